"""Computes what depends on constants only, where that makes the program no larger."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from executorch.exir.graph.operator_kind import is_symbolic, overload_of
from executorch.exir.passes.constant_prop_pass import (
    get_constant_placeholder_dict,
    get_data,
    replace_by_constants,
)
from executorch.exir.torch_internals import (
    FakeTensor,
    is_traceable_wrapper_subclass,
    op_name,
    schema_of,
)

# What one folded result may add to the file: it saves an instruction, often several, of each call.
_SMALL_BYTES = 16 * 1024

_NAMESPACES = ("aten", "dim_order_ops")
_QUANTIZE = "quantized_decomposed::quantize_per_"

# Results that are the operand's memory in another order: nothing is copied before it is written.
_AS_VIEWS: dict[str, Callable[..., Tensor]] = {
    "aten::permute_copy": torch.permute,
    "aten::view_copy": torch.reshape,
    "aten::unsqueeze_copy": torch.unsqueeze,
    "aten::squeeze_copy": torch.squeeze,
    "aten::alias_copy": torch.Tensor.detach,
    "aten::detach_copy": torch.Tensor.detach,
}

Place = tuple[int, int]


def fold_constants(programs: ExportedProgram | Mapping[str, ExportedProgram]) -> bool:
    """Replace calls on constants by their results, in place; true if anything was folded.

    Before    w = placeholder; t = permute_copy(w, [1, 0]); y = addmm(b, x, t)
    After     t = placeholder; y = addmm(b, x, t)
    Requires  edge dialect. Programs given together are stored together: a constant that another
              one of them reads stays.
    Ensures   equal values. A result takes no more bytes than the constants that nobody reads
              any more, or at most 16 KiB. Transposed weights remain views of the given ones.
    Leaves    programs that compute gradients; results that are graph outputs; random numbers;
              dequantization, which would undo the compression of weights; operators of other
              libraries; anything in control flow.
    """
    methods = [programs] if isinstance(programs, ExportedProgram) else list(dict(programs).values())
    if any(map(is_trained, methods)):
        return False
    kept: set[Place] = set()
    while True:  # what is kept grows with every round
        plans = [_plan(program, kept) for program in methods]
        read = set().union(*(_places_read(p, plan) for p, plan in zip(methods, plans, strict=True)))
        if read <= kept:
            break
        kept |= read
    return any([_fold(p, plan) for p, plan in zip(methods, plans, strict=True) if plan])


def _fold(program: ExportedProgram, plan: set[Node]) -> bool:
    known: dict[Node, Tensor] = dict(constant_tensors(program))
    for node in program.graph.nodes:
        if node in plan:
            with torch.no_grad():
                known[node] = _evaluate(node, program, known)
    return replace_by_constants(program, known)


def _evaluate(node: Node, program: ExportedProgram, known: Mapping[Node, Tensor]) -> Tensor:
    args, kwargs = get_data((node.args, node.kwargs), program, known)
    op = overload_of(node.target)
    view = _AS_VIEWS.get(schema_of(op).name) if op is not None else None
    if view is not None and not kwargs:
        return view(*args).detach()
    result: Tensor = node.target(*args, **kwargs)  # type: ignore[operator]
    return result


def constant_tensors(program: ExportedProgram) -> dict[Node, Tensor]:
    """Placeholder -> tensor, of the constants whose values are there, in plain memory."""
    found = get_constant_placeholder_dict(program)
    return {n: t for n, t in found.items() if _is_plain(t)}


def _is_plain(tensor: Tensor) -> bool:
    special = isinstance(tensor, FakeTensor) or is_traceable_wrapper_subclass(tensor)
    return not special and not tensor.is_meta and tensor.layout is torch.strided


def is_trained(program: ExportedProgram) -> bool:
    """Whether the program computes gradients: its parameters change from call to call."""
    gradients = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)
    return any(s.kind in gradients for s in program.graph_signature.output_specs)


def place_of(tensor: Tensor) -> Place:
    """Where the tensor's bytes are: equal for one weight under several names."""
    return tensor.data_ptr(), tensor.nbytes


def _plan(program: ExportedProgram, kept: set[Place]) -> set[Node]:
    """The nodes to compute, given which constants are stored in any case."""
    constants = constant_tensors(program)
    readers: dict[Place, int] = {}
    for node, tensor in constants.items():
        readers[place_of(tensor)] = readers.get(place_of(tensor), 0) + len(node.users)
    planned: set[Node] = set()

    def freed(source: Node) -> int:
        """The bytes that go if this reader of `source` does."""
        if source in planned:
            return _bytes(source) if len(source.users) == 1 else 0
        place = place_of(constants[source])
        return constants[source].nbytes if readers[place] == 1 and place not in kept else 0

    for node in program.graph.nodes:
        if not _is_foldable(node) or any(
            n not in constants and n not in planned for n in node.all_input_nodes
        ):
            continue
        if _bytes(node) <= sum(map(freed, node.all_input_nodes)) + _SMALL_BYTES:
            planned.add(node)
    return planned


def _bytes(node: Node) -> int:
    value: Tensor = node.meta["val"]
    return value.numel() * value.element_size()


def _is_foldable(node: Node) -> bool:
    op = overload_of(node.target) if node.op == "call_function" else None
    value = node.meta.get("val")
    if op is None or not isinstance(value, Tensor):
        return False
    if op.namespace not in _NAMESPACES and not op.name().startswith(_QUANTIZE):
        return False
    if schema_of(op).is_mutable or is_symbolic(op) or op_name(op).startswith("empty"):
        return False
    if torch.Tag.nondeterministic_seeded in op.tags or value.layout is not torch.strided:
        return False
    if any(not isinstance(extent, int) for extent in value.shape):
        return False
    return all(user.op != "output" for user in node.users) and not _has_symbols(node)


def _has_symbols(node: Node) -> bool:
    return any(not isinstance(n.meta.get("val"), Tensor) for n in node.all_input_nodes)


def _places_read(program: ExportedProgram, plan: set[Node]) -> set[Place]:
    """The constants that calls outside the plan read."""
    return {
        place_of(tensor)
        for node, tensor in constant_tensors(program).items()
        if any(user not in plan for user in node.users)
    }
