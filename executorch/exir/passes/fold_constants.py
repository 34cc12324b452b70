"""Computes what depends on constants only, where that makes the program no larger."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from executorch.exir.error import ExportError, ExportErrorType, first_line
from executorch.exir.graph.operator_kind import converts_float8, is_symbolic, overload_of
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, Place, ProgramView, place_of
from executorch.exir.graph.source_line import source_line
from executorch.exir.passes.constant_prop_pass import replace_by_constants
from executorch.exir.torch_internals import op_name, schema_of

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


class FoldConstants(Pass):
    """Replace calls on constants by their results, where that makes the program no larger.

    operands  of a call: only these of each call, and what they are computed from; default: all

    Before    w = placeholder; t = permute_copy(w, [1, 0]); y = addmm(b, x, t)
    After     t = placeholder; y = addmm(b, x, t)
    Requires  edge dialect. Methods given together are stored together: a constant that another one
              of them reads stays.
    Ensures   equal values. A result takes no more bytes than the constants that nobody reads
              any more, or at most 16 KiB. Transposed weights remain views of the given ones.
              What is converted from float8 is stored as the type it has afterwards, of any size:
              kernels do not convert float8.
    Leaves    programs that compute gradients; results that are graph outputs; random numbers;
              dequantization, which would undo the compression of weights; operators of other
              libraries; calls of which several results are read; anything in control flow.
    """

    takes = frozenset({Dialect.EDGE})

    def __init__(self, operands: Callable[[Node], Iterable[Node]] | None = None) -> None:
        self.operands = operands

    def edit_methods(self, views: Sequence[ProgramView]) -> bool:
        if any(view.is_trained for view in views):
            return False
        kept: set[Place] = set()
        while True:  # what is kept grows with every round
            plans = [_plan(view, kept, self.operands) for view in views]
            read = set().union(*map(_places_read, views, plans))
            if read <= kept:
                break
            kept |= read
        return any([_fold(view, plan) for view, plan in zip(views, plans, strict=True) if plan])


def _fold(view: ProgramView, plan: set[Node]) -> bool:
    known: dict[Node, Tensor] = dict(view.constants)
    for node in view.graph.nodes:
        if node in plan:
            try:
                with torch.no_grad():
                    known[node] = _evaluate(node, known)
            except (IndexError, RuntimeError) as error:  # what kernels report, such as a bad index
                raise ExportError(
                    ExportErrorType.NOT_SUPPORTED,
                    f"{node} ({overload_of(node.target)}) has constant operands and fails: "
                    f"{first_line(error)}\n  in your model: {source_line(node)}",
                ) from error
    return replace_by_constants(view, known)


def _evaluate(node: Node, known: Mapping[Node, Tensor]) -> Tensor:
    args, kwargs = map_arg((node.args, node.kwargs), known.__getitem__)
    op = overload_of(node.target)
    view = _AS_VIEWS.get(schema_of(op).name) if op is not None else None
    if view is not None and not kwargs:
        return view(*args).detach()
    result: Tensor = node.target(*args, **kwargs)  # type: ignore[operator]
    return result


def _plan(
    view: ProgramView, kept: set[Place], operands: Callable[[Node], Iterable[Node]] | None
) -> set[Node]:
    """The nodes to compute, given which constants are stored in any case."""
    constants, readers = view.constants, view.readers
    wanted = None if operands is None else _computed_from(view, operands)
    planned: set[Node] = set()

    def freed(source: Node) -> int:
        """The bytes that go if this reader of `source` does."""
        if source in planned:
            return _bytes(source) if len(source.users) == 1 else 0
        place = place_of(constants[source])
        return constants[source].nbytes if readers[place] == 1 and place not in kept else 0

    for node in view.graph.nodes:
        if (wanted is not None and node not in wanted) or not _is_foldable(node):
            continue
        if any(n not in constants and n not in planned for n in node.all_input_nodes):
            continue
        small = _bytes(node) <= sum(map(freed, node.all_input_nodes)) + _SMALL_BYTES
        if small or converts_float8(node):
            planned.add(node)
    return planned


def _computed_from(view: ProgramView, operands: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """The operands of all calls, and everything that they are computed from."""
    wanted = {node for call in view.graph.nodes for node in operands(call)}
    for node in reversed(view.graph.nodes):
        if node in wanted:
            wanted.update(node.all_input_nodes)
    return wanted


def _bytes(node: Node) -> int:
    value: Tensor = _read(node).meta["val"]
    return value.numel() * value.element_size()


def _read(call: Node) -> Node:
    """The call, or what takes the only one that is read of its results."""
    users = list(call.users)
    several = isinstance(call.meta.get("val"), (list, tuple))
    return users[0] if several and len(users) == 1 else call


def _is_foldable(node: Node) -> bool:
    if node.target is operator.getitem:
        return True  # where the call is
    op = overload_of(node.target) if node.op == "call_function" else None
    result = _read(node)
    value = result.meta.get("val")
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
    return all(user.op != "output" for user in result.users) and not _has_symbols(node)


def _has_symbols(node: Node) -> bool:
    return any(not isinstance(n.meta.get("val"), Tensor) for n in node.all_input_nodes)


def _places_read(view: ProgramView, plan: set[Node]) -> set[Place]:
    """The constants that calls outside the plan read."""
    return {
        place_of(tensor)
        for node, tensor in view.constants.items()
        if any(user not in plan for user in node.users)
    }
