from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.dialects.edge._ops import edge_op
from executorch.exir.graph.graph_edit import same_shape
from executorch.exir.graph.operator_kind import is_inplace, overload_of
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.passes.normalize_view_copy_base_pass import is_view_copy
from executorch.exir.torch_internals import op_name, overload_name, schema_of

# Edge operators that `reinplace_pass` treats unless it is told which.
DEFAULT_INPLACEABLE_OPS: frozenset[Any] = frozenset({exir_ops.edge.aten.index_put.default})


class Reinplace(Pass):
    """Let operators write into their first operand where its old value is not read again.

    Before    y = index_put(x, i, v), x and its views not used later
    After     y = index_put_(x, i, v)
    Requires  a functional edge graph, before out variants and write-backs.
    Leaves    operands that are constants or inputs of the caller, results of another shape or type,
              operators that read the operand in a second place, or without an in-place form.
    wanted     edge operators
    overrides  functional operator -> what writes into its first argument, where the name is not the
               same with `_`; ValueError if the two do not belong together
    """

    takes = frozenset({Dialect.EDGE, Dialect.BACKEND})
    gives = Dialect.BACKEND

    def __init__(
        self,
        wanted: Iterable[Any] = DEFAULT_INPLACEABLE_OPS,
        overrides: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        for functional, in_place in overrides.items():
            _check_override(functional, in_place)
        self._in_place_of: dict[str, Any] = {}
        for functional in (*wanted, *overrides):
            op = overload_of(functional)
            if op is None:
                raise TypeError(f"ops_to_inplace: {functional!r} is no operator")
            self._in_place_of[op.name()] = overrides.get(functional) or _in_place_form(op)

    def edit(self, view: ProgramView) -> bool:
        fixed = view.inputs.keys() - view.changing_buffers
        order = {node: i for i, node in enumerate(view.graph.nodes)}
        modified = False
        for node in view.graph.nodes:
            op = overload_of(node.target) if node.op == "call_function" else None
            target = self._in_place_of.get(op.name()) if op is not None else None
            if target is not None and _may_overwrite(node, fixed, order):
                node.target = target
                modified = True
        return modified


class UndoReinplace(Pass):
    """Let an operator that has no in-place kernel give a result of its own.

    Before    y = add_(x, z)
    After     y = add(x, z); whoever reads x later reads y
    Requires  a graph before out variants and write-backs.
    Leaves    calls of operators that have an in-place kernel, or no other one, and those that write
              an input that the signature gives no next value.
    known     names of the operators that there are kernels for
    """

    takes = frozenset({Dialect.EDGE, Dialect.BACKEND})

    def __init__(self, known: Set[str]) -> None:
        self._known = known

    def edit(self, view: ProgramView) -> bool:
        order = {node: i for i, node in enumerate(view.graph.nodes)}
        modified = False
        for node in view.graph.nodes:
            op = overload_of(node.target) if node.op == "call_function" else None
            if op is None or op.name() in self._known or not is_inplace(op):
                continue
            functional, written = _functional_form(op), node.args[0] if node.args else None
            if functional is None or not isinstance(written, Node):
                continue
            if written.op == "placeholder" and written not in view.next_values:
                continue
            if not self._has_kernel(functional):
                continue
            node.target = functional
            later = {u for u in written.users if order[u] > order[node]}
            written.replace_all_uses_with(node, delete_user_cb=later.__contains__)
            modified = True
        return modified

    def _has_kernel(self, op: Any) -> bool:
        try:
            return op.to_out_variant().name() in self._known
        except RuntimeError:
            return False


def reinplace_pass(
    ep: ExportedProgram,
    ops_to_inplace: Iterable[Any] | None = None,
    inplace_overrides: Mapping[Any, Any] | None = None,
) -> ExportedProgram:
    """`Reinplace` on `ep` itself, which is returned."""
    wanted = DEFAULT_INPLACEABLE_OPS if ops_to_inplace is None else ops_to_inplace
    Reinplace(wanted, inplace_overrides or {})(ep)
    return ep


def _check_override(functional: Any, in_place: Any) -> None:
    """ValueError unless `in_place` has the functional one's types, writes into its first argument,
    and into nothing else."""
    before, after = overload_of(functional), overload_of(in_place)
    where = f"inplace_overrides: {functional} -> {in_place}"
    if before is None or after is None:
        raise ValueError(f"{where}: not two operators")
    types = [[str(a.type) for a in schema_of(op).arguments] for op in (before, after)]
    if types[0] != types[1]:
        raise ValueError(f"{where}: the argument types differ, {types[0]} and {types[1]}")
    written = [a.name for a in schema_of(after).arguments if a.alias_info and a.alias_info.is_write]
    if not schema_of(after).arguments or written != [schema_of(after).arguments[0].name]:
        raise ValueError(f"{where}: it writes into {written or 'nothing'}, not its first argument")


def _in_place_form(op: Any) -> Any:
    packet = getattr(getattr(torch.ops, op.namespace), op_name(op) + "_", None)
    if packet is None or overload_name(op) not in packet.overloads():
        return None
    name = op_name(op) + "_"
    return getattr(getattr(getattr(exir_ops.edge, op.namespace), name), overload_name(op))


def _functional_form(op: Any) -> Any:
    """`add` of `add_`, as an edge operator; None if there is none of the same arguments."""
    name = op_name(op).removesuffix("_")
    packet = getattr(getattr(torch.ops, op.namespace), name, None)
    if packet is None or overload_name(op) not in packet.overloads():
        return None
    functional = getattr(packet, overload_name(op))
    types = [[str(a.type) for a in schema_of(o).arguments] for o in (op, functional)]
    if schema_of(functional).is_mutable or types[0] != types[1]:
        return None
    return edge_op(functional)


def _may_overwrite(node: Node, fixed: Set[Node], order: dict[Node, int]) -> bool:
    operand = node.args[0]
    if not isinstance(operand, Node):
        return False
    result, old = node.meta["val"], operand.meta["val"]
    if result.dtype != old.dtype or not same_shape(result.shape, old.shape):
        return False
    root = operand
    while is_view_copy(root):
        root = root.args[0]  # type: ignore[assignment]
    if root.op == "get_attr" or root in fixed:
        return False
    # A buffer's new value must reach the buffer: in place only if it is written itself.
    if root.op == "placeholder" and operand is not root:
        return False
    family, pending = {root}, [root]
    while pending:
        for user in pending.pop().users:
            if is_view_copy(user) and user not in family:
                family.add(user)
                pending.append(user)
    others: set[Node] = set()
    map_arg((node.args[1:], node.kwargs), others.add)
    if others & family:
        return False  # it would read what it has written
    uses = {user for member in family for user in member.users}
    return all(order[user] <= order[node] for user in uses)
