from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import (
    GraphEdit,
    is_droppable,
    replace_node,
    same_extent,
    same_shape,
)

_aten = torch.ops.aten


class RemoveNoopPass(GraphEdit):
    """Drop operators that return their input as it is.

    Before    y = slice_copy(x, dim, 0, size); z = f(y)
    After     z = f(x)
    Requires  aten dialect with views turned into copies.
    Leaves    a graph output that would otherwise become an input or a second output.

    Covers to.dtype, dropout outside of training, and slices, expansions, views and permutations
    that change nothing.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            rule = _RULES.get(node.target) if node.op == "call_function" else None
            if rule is None or not rule(node):
                continue
            source = node.args[0]
            if is_droppable(node, source):
                replace_node(node, source)
                modified = True
        return modified


def _same_layout(node: Node) -> bool:
    before, after = node.args[0].meta["val"], node.meta["val"]  # type: ignore[union-attr]
    return bool(
        before.dtype is after.dtype
        and same_shape(before.shape, after.shape)
        and same_shape(before.stride(), after.stride())
    )


def _is_full_slice(node: Node) -> bool:
    if node.kwargs:
        return False
    given: tuple[Any, ...] = node.args
    defaults: tuple[Any, ...] = (0, None, None, 1)
    dim, start, end, step = given[1:] + defaults[len(given) - 1 :]
    if start not in (0, None) or step != 1 or not isinstance(dim, int):
        return False
    extent = node.args[0].meta["val"].shape[dim]  # type: ignore[union-attr]
    whole = end is None or (isinstance(end, int) and end >= 2**63 - 1)
    whole = whole or (isinstance(end, int) and isinstance(extent, int) and end >= extent)
    same = whole or same_extent(node.meta["val"].shape[dim], extent)
    return bool(same) and _same_layout(node)


def _is_inactive_dropout(node: Node) -> bool:
    return bool(node.args[1] == 0 or not node.args[2])


def _is_identity_permutation(node: Node) -> bool:
    dims = node.args[1]
    return list(dims) == list(range(len(dims)))  # type: ignore[arg-type]


_RULES = {
    _aten.to.dtype: _same_layout,
    _aten.dropout.default: _is_inactive_dropout,
    _aten.slice_copy.Tensor: _is_full_slice,
    _aten.expand_copy.default: _same_layout,
    _aten.view_copy.default: _same_layout,
    _aten.alias_copy.default: _same_layout,
    _aten.detach_copy.default: _same_layout,
    _aten.permute_copy.default: _is_identity_permutation,
    _aten.clone.default: _same_layout,
}
