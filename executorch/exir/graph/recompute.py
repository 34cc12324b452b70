"""Fake values computed anew where operators or the order of their operands' dims changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import compute_value, exact_sizes, is_channels_last
from executorch.exir.torch_internals import HigherOrderOperator


def recompute_value(node: Node) -> bool:
    """Compute the fake value of a call anew; true if its strides changed. A value without strides
    stays, and so does one whose strides did not change."""
    before = _strides(node.meta.get("val"))
    if before is None:
        return False
    value = compute_value(node.target, node.args, node.kwargs)
    if _strides(value) == before:
        return False
    node.meta["val"] = value
    return True


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
        before = node.meta.get("val")
        if recompute_value(node):
            changed[node] = before
    return changed


def restore_operands(
    call: Node, changed: Mapping[Node, Any], copy: Callable[[Node, Node, torch.Tensor], Node]
) -> None:
    """Give a call of another graph, which knows the order of its operands' dims, copies in that
    order: `copy(call, operand, value)` inserts one that has the value which `operand` had before.
    """
    for operand in call.all_input_nodes:
        before = changed.get(operand)
        if isinstance(before, torch.Tensor) and is_channels_last(before):
            call.replace_input_with(operand, copy(call, operand, before))


def _strides(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return exact_sizes(value.stride())
    if isinstance(value, (tuple, list)):
        return tuple([_strides(v) for v in value])
    return None
