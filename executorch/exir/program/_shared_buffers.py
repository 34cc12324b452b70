"""Tensors that the model writes: those of several names, and parameters."""

from __future__ import annotations

import copy
from collections.abc import Hashable

from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Node
from torch.nn import Parameter

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.torch_internals import set_parts


def name_tensors_once(program: ExportedProgram) -> ExportedProgram:
    """`program` with one input for each buffer and parameter, the first of its names, as a new
    program; `program` itself if none has two names. A write to one name is then seen under the
    others."""
    groups = [names for names in _by_place(ProgramView(program)).values() if len(names) > 1]
    if not groups:
        return program
    graph = copy.deepcopy(program.graph)
    copies: dict[Node, Node] = {}
    for mine, theirs in zip(graph.nodes, program.graph.nodes, strict=True):
        mine.name = theirs.name  # as the signature says; fx has others for `input` and the like
        copies[theirs] = mine
    for first, *others in groups:
        for other in others:
            copies[other].replace_all_uses_with(copies[first])
            graph.erase_node(copies[other])
    new = copy.copy(program)
    set_parts(new, graph_module=GraphModule(program.graph_module, graph))
    new.graph_module.meta.update(program.graph_module.meta)
    ProgramView(new).update_inputs()
    return new


def hold_written_parameters_in_buffers(program: ExportedProgram) -> None:
    """Changes the signature of a program that writes parameters: they are state, as buffers are."""
    signature = program.graph_signature
    written = {s.target for s in signature.output_specs if s.kind is OutputKind.PARAMETER_MUTATION}
    for given in signature.input_specs:
        if given.kind is InputKind.PARAMETER and given.target in written:
            given.kind, given.persistent = InputKind.BUFFER, True
    for result in signature.output_specs:
        if result.kind is OutputKind.PARAMETER_MUTATION:
            result.kind = OutputKind.BUFFER_MUTATION


def refuse_buffers_that_overlap(program: ExportedProgram) -> None:
    """ExportError that names two buffers of one memory, where neither is the other."""
    seen: dict[int, str] = {}
    view = ProgramView(program)
    for nodes in _by_place(view).values():
        spec = view.inputs[nodes[0]]
        other = seen.setdefault(view.tensor_of(spec).untyped_storage().data_ptr(), str(spec.target))
        if other != spec.target:
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"{other} and {spec.target} are views of one memory, which the model "
                "writes; register the whole tensor as the only buffer, and make the views of it in "
                "forward",
            )


def _by_place(view: ProgramView) -> dict[Hashable, list[Node]]:
    """Where a tensor's elements are -> its placeholders, in the graph's order."""
    found: dict[Hashable, list[Node]] = {}
    # Gradients are of parameters under all their names.
    kinds = (InputKind.BUFFER,) if view.is_trained else (InputKind.BUFFER, InputKind.PARAMETER)
    for node, spec in view.inputs.items():
        if spec.kind not in kinds:
            continue
        tensor = view.tensor_of(spec)
        if type(tensor) in (Tensor, Parameter) and not tensor.is_meta and tensor.numel() > 0:
            place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
            found.setdefault(place, []).append(node)
    return found
