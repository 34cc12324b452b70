from __future__ import annotations

import operator
from typing import Any

from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import GraphEdit, insert_before

_aten = ops.edge.aten


class RemoveGetItemPass(GraphEdit):
    """Compute maxima without their positions where nothing reads those.

    Before    y, i = max_pool2d_with_indices(x, ...), i not read; m, j = max.dim(x, 1), j not read
    After     y = max_pool2d(x, ...); m = amax(x, 1)
    Requires  edge operators.
    Leaves    calls whose positions are read.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        targets = {_aten.max_pool2d_with_indices.default: _aten.max_pool2d.default}
        targets[_aten.max.dim] = _aten.amax.default
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function" or node.target not in targets:
                continue
            items = list(node.users)
            if not items or any(i.target is not operator.getitem or i.args[1] for i in items):
                continue
            replacement = _replacement(node, targets[node.target])
            for item in items:
                item.replace_all_uses_with(replacement)
                graph_module.graph.erase_node(item)
            graph_module.graph.erase_node(node)
            modified = True
        return modified


def _replacement(node: Node, target: Any) -> Node:
    values = node.meta["val"]
    return insert_before(node, target, node.args, node.kwargs, value=values[0])
