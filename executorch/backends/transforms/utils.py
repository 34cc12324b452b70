"""Parameters, buffers and constants of exported programs, as passes of backends ask for them, add
them and take them away.

A new placeholder has the name that was asked for, or one near it where that is no identifier or
belongs to an input of the user's. What it reads is stored under its name.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, Node

from executorch.exir.graph.graph_edit import attribute_of
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.torch_internals import FakeTensor, FakeTensorMode, set_parts

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def is_get_attr_node(node: Node) -> bool:
    return node.op == "get_attr"


def is_param_node(exp_prog: ExportedProgram, node: Node) -> bool:
    """Whether a node reads a tensor that the program stores."""
    return is_get_attr_node(node) or _stored_spec(exp_prog, node) is not None


def get_param_tensor(exp_prog: ExportedProgram, node: Node) -> Tensor | None:
    """The tensor that `is_param_node` tells of; None for other nodes."""
    if is_get_attr_node(node):
        tensor: Tensor = attribute_of(exp_prog.graph_module, str(node.target))
        return tensor
    spec = _stored_spec(exp_prog, node)
    return None if spec is None else ProgramView(exp_prog).tensor_of(spec)


def set_param_tensor(exp_prog: ExportedProgram, node: Node, data: Tensor) -> None:
    """Let a node that `is_param_node` tells of read another tensor; RuntimeError for others."""
    if is_get_attr_node(node):
        *path, name = str(node.target).split(".")
        holder = (
            attribute_of(exp_prog.graph_module, ".".join(path)) if path else exp_prog.graph_module
        )
        old = getattr(holder, name)
        if isinstance(old, torch.nn.Parameter):
            data = torch.nn.Parameter(data, old.requires_grad)
        setattr(holder, name, data)
    else:
        spec = _stored_spec(exp_prog, node)
        if spec is None:
            raise RuntimeError(f"{node} is no constant of the program")
        _store(exp_prog, node, spec, data)
    if isinstance(value := node.meta.get("val"), FakeTensor):
        node.meta["val"] = value.fake_mode.from_tensor(data, static_shapes=True)


def create_constant_placeholder(
    exp_program: ExportedProgram,
    graph: Graph,
    name: str,
    kind: InputKind,
    data: Tensor,
    persistent_buffer: bool | None = None,
) -> Node:
    """A placeholder for `data`, put where `graph` inserts nodes; or the one that a former call with
    this name made.

    kind               PARAMETER, BUFFER or CONSTANT_TENSOR
    persistent_buffer  whether a buffer belongs to the state dict; needed for buffers
    Raises RuntimeError if the name is that of a mutable buffer, ValueError for other kinds.
    """
    if kind not in _STORED or (kind is InputKind.BUFFER and persistent_buffer is None):
        raise ValueError(
            f"{name}: {kind} with persistent_buffer={persistent_buffer} is no constant"
        )
    known = _placeholder_of(exp_program, graph, name)
    if known is not None:
        spec = _stored_spec(exp_program, known)
        if (
            spec is not None
            and spec.target in exp_program.graph_signature.buffers_to_mutate.values()
        ):
            raise RuntimeError(f"{name} already exists as a mutable buffer")
        return known
    node = _new_placeholder(graph, name, data)
    persistent = persistent_buffer if kind is InputKind.BUFFER else None
    _store(
        exp_program, node, InputSpec(kind, TensorArgument(node.name), node.name, persistent), data
    )
    return node


def delete_constant_placeholder(exp_program: ExportedProgram, node: Node) -> None:
    """Remove a placeholder that nothing reads, and what is stored for it alone."""
    if _stored_spec(exp_program, node) is None:
        raise RuntimeError(f"{node} is no constant of the program")
    exp_program.graph.erase_node(node)
    ProgramView(exp_program).update_inputs()
    exp_program.graph_module.recompile()


def create_mutable_buffer(exp_program: ExportedProgram, name: str, data: Tensor) -> Node:
    """A placeholder for a buffer that starts as `data` and that operators may write into; behind
    the parameters and buffers there are. Stored without the prefix "b_" of torch's own.

    Raises RuntimeError if there is such a buffer, or another constant of this name.
    """
    graph, signature = exp_program.graph, exp_program.graph_signature
    if name.removeprefix("b_") in exp_program.state_dict:
        raise RuntimeError(f"{name.removeprefix('b_')} already exists in state_dict")
    if _placeholder_of(exp_program, graph, name) is not None:
        raise RuntimeError(f"a constant for {name} already exists in the graph")
    first = sum(s.kind in (InputKind.PARAMETER, InputKind.BUFFER) for s in signature.input_specs)
    with graph.inserting_before(list(graph.nodes)[first]):
        node = _new_placeholder(graph, name, data)
    target = node.name.removeprefix("b_")
    argument = TensorArgument(node.name)
    _store(exp_program, node, InputSpec(InputKind.BUFFER, argument, target, True), data)
    kept = [spec.kind is OutputKind.BUFFER_MUTATION for spec in signature.output_specs]
    place, output = sum(kept), graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    results.insert(place, node)
    output.args = (tuple(results),)
    specs = list(signature.output_specs)
    specs.insert(place, OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(node.name), target))
    ProgramView(exp_program).update_outputs(specs)
    exp_program.graph_module.recompile()
    return node


def _stored_spec(program: ExportedProgram, node: Node) -> InputSpec | None:
    spec = ProgramView(program).inputs.get(node)
    return spec if spec is not None and spec.kind in _STORED else None


def _placeholder_of(program: ExportedProgram, graph: Graph, name: str) -> Node | None:
    """The placeholder of a constant that was made for a name."""
    called = Graph().placeholder(name).name
    found = [node for node in graph.find_nodes(op="placeholder") if node.name == called]
    return found[0] if found and _stored_spec(program, found[0]) is not None else None


def _new_placeholder(graph: Graph, name: str, data: Tensor) -> Node:
    values = (node.meta.get("val") for node in graph.find_nodes(op="placeholder"))
    modes = [value.fake_mode for value in values if isinstance(value, FakeTensor)]
    mode = modes[0] if modes else FakeTensorMode(allow_non_fake_inputs=True)
    node = graph.placeholder(name)
    node.target = node.name
    node.meta["val"] = mode.from_tensor(data, static_shapes=True)
    return node


def _store(program: ExportedProgram, node: Node, spec: InputSpec, data: Tensor) -> None:
    target = str(spec.target)
    if spec.kind is InputKind.PARAMETER:
        data = _as_parameter(data)
    in_state = spec.kind is InputKind.PARAMETER or bool(spec.persistent)
    if not in_state:
        set_parts(program, constants=program.constants | {target: data})
    ProgramView(program).update_inputs({node.name: spec}, {target: data} if in_state else None)
    program.graph_module.recompile()


def _as_parameter(data: Tensor) -> Tensor:
    is_one = isinstance(data, torch.nn.Parameter)
    return data if is_one else torch.nn.Parameter(data, requires_grad=False)
