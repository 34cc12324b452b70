from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.pass_driver import CallPass

_aten = ops.edge.aten

_WITHOUT_POSITIONS: dict[Any, Any] = {
    _aten.max_pool2d_with_indices.default: _aten.max_pool2d.default,
    _aten.max.dim: _aten.amax.default,
}


class RemoveGetItemPass(CallPass):
    """Compute maxima without their positions where nothing reads those.

    Before    y, i = max_pool2d_with_indices(x, ...), i not read; m, j = max.dim(x, 1), j not read
    After     y = max_pool2d(x, ...); m = amax(x, 1)
    Requires  edge operators.
    Leaves    calls whose positions are read.
    """

    def change(self, call: Node) -> bool:
        target = _WITHOUT_POSITIONS.get(call.target)
        items = list(call.users)
        if target is None or not items:
            return False
        if any(i.target is not operator.getitem or i.args[1] for i in items):
            return False
        value = call.meta["val"][0]
        replacement = insert_before(call, target, call.args, call.kwargs, value=value)
        for item in items:
            replace_node(item, replacement)
        call.graph.erase_node(call)
        return True
