from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.passes.graph_edit import same_shape
from executorch.exir.passes.normalize_view_copy_base_pass import is_view_copy
from executorch.exir.passes.operator_kind import overload_of

_DEFAULT = ("aten::index_put",)


def reinplace_pass(
    program: ExportedProgram, extra_ops: frozenset[Any] | None = None
) -> ExportedProgram:
    """Let operators write into their first operand where its old value is not read again.

    Before    y = index_put(x, i, v), x and its views not used later
    After     y = index_put_(x, i, v)
    Requires  a functional edge graph, before out variants and write-backs.
    Leaves    operands that are constants or inputs of the caller, results of another shape or type,
              operators without an in-place form. `extra_ops` are edge operators beside index_put.
    """
    names = set(_DEFAULT)
    for extra in extra_ops or ():
        op = overload_of(extra)
        if op is None:
            raise TypeError(f"reinplace_extra_ops: {extra!r} is no operator")
        names.add(op.name())
    fixed = _fixed_inputs(program)
    graph = program.graph_module.graph
    order = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        op = overload_of(node.target) if node.op == "call_function" else None
        if op is None or op.name() not in names:
            continue
        target = _in_place_form(op)
        if target is not None and _may_overwrite(node, fixed, order):
            node.target = target
    _recompile(graph, program)
    return program


def _recompile(graph: Graph, program: ExportedProgram) -> None:
    graph.lint()
    program.graph_module.recompile()


def _fixed_inputs(program: ExportedProgram) -> set[str]:
    """Names of the inputs that must keep their values."""
    signature = program.graph_signature
    mutated = {s.target for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    return {
        s.arg.name
        for s in signature.input_specs
        if not (s.kind is InputKind.BUFFER and s.target in mutated)
    }


def _in_place_form(op: Any) -> Any:
    packet = getattr(getattr(torch.ops, op.namespace), op._opname + "_", None)
    if packet is None or op._overloadname not in packet.overloads():
        return None
    name = op._opname + "_"
    return getattr(getattr(getattr(exir_ops.edge, op.namespace), name), op._overloadname)


def _may_overwrite(node: Node, fixed: set[str], order: dict[Node, int]) -> bool:
    operand = node.args[0]
    if not isinstance(operand, Node):
        return False
    result, old = node.meta["val"], operand.meta["val"]
    if result.dtype != old.dtype or not same_shape(result.shape, old.shape):
        return False
    root = operand
    while is_view_copy(root):
        root = root.args[0]  # type: ignore[assignment]
    if root.op == "get_attr" or (root.op == "placeholder" and root.name in fixed):
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
    uses = {user for member in family for user in member.users}
    return all(order[user] <= order[node] for user in uses)
