from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch.fx import GraphModule, Node

import executorch.exir.graph.fake_copies  # noqa: F401
from executorch.exir.graph.graph_edit import compute_value, insert_before, is_channels_last
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.torch_internals import (
    HigherOrderOperator,
    OpOverload,
    op_name,
    overload_name,
    schema_of,
)

_IRREGULAR = {"_reshape_alias": "view_copy", "lift_fresh": "clone", "_unsafe_view": "view_copy"}


@cache
def copy_variant(op: OpOverload) -> OpOverload | None:
    """The operator that returns a fresh tensor where `op` returns a view; else None."""
    schema = schema_of(op)
    if op.namespace != "aten" or schema.is_mutable:
        return None
    if op_name(op) not in _IRREGULAR and all(r.alias_info is None for r in schema.returns):
        return None
    name = _IRREGULAR.get(op_name(op), f"{op_name(op)}_copy")
    packet = getattr(torch.ops.aten, name, None)
    overload = overload_name(op) if op_name(op) not in _IRREGULAR else "default"
    return getattr(packet, overload, None) if packet is not None else None


class ReplaceBrokenOpsWithFunctionalOpsPass(GraphPass):
    """Turn views into copies.

    Before    y = aten.permute(x, dims)
    After     y = aten.permute_copy(x, dims)
    Ensures   equal values; results are contiguous, and the values downstream know it. The graphs
              of control flow get their operands in the order that they had.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        stale: set[Node] = set()
        for node in graph_module.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, OpOverload):
                continue
            copy = copy_variant(node.target)
            if copy is not None:
                node.target = copy
                if copy is torch.ops.aten.view_copy.default:
                    node.args = node.args[:2]
                stale.add(node)
                modified = True
        _restore_operands(graph_module, recompute_values(graph_module, stale))
        return modified


def _restore_operands(graph_module: GraphModule, changed: Mapping[Node, Any]) -> None:
    """Give control flow, whose graphs know the order of their operands, copies in that order."""
    for call in graph_module.graph.nodes if changed else ():
        if not isinstance(call.target, HigherOrderOperator):
            continue
        for operand in call.all_input_nodes:
            before = changed.get(operand)
            if isinstance(before, torch.Tensor) and is_channels_last(before):
                options = {"memory_format": torch.channels_last}
                copy = insert_before(
                    call, torch.ops.aten.clone.default, (operand,), options, value=before
                )
                call.replace_input_with(operand, copy)


def recompute_values(graph_module: GraphModule, stale: set[Node]) -> Mapping[Node, Any]:
    """Compute the fake values of `stale` calls anew, and of all that see other strides by that.

    Placeholders in `stale` have their new value already. Returns what had another value, with it.
    """
    changed: dict[Node, Any] = {node: None for node in stale if node.op == "placeholder"}
    if not stale:
        return changed
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or isinstance(node.target, HigherOrderOperator):
            continue
        if node not in stale and changed.keys().isdisjoint(node.all_input_nodes):
            continue
        before = _strides(node.meta.get("val"))
        if before is None:
            continue
        value = compute_value(node.target, node.args, node.kwargs)
        if _strides(value) != before:
            changed[node] = node.meta["val"]
            node.meta["val"] = value
    return changed


def _strides(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return tuple([s.node.expr if isinstance(s, torch.SymInt) else s for s in value.stride()])
    if isinstance(value, (tuple, list)):
        return tuple([_strides(v) for v in value])
    return None
