from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit, insert_before
from executorch.exir.graph.operands import operands, promoted_dtype

_aten = torch.ops.aten
_ARITHMETIC = {
    _aten.add.Tensor,
    _aten.sub.Tensor,
    _aten.mul.Tensor,
    _aten.div.Tensor,
    _aten.div.Tensor_mode,
    _aten.minimum.default,
    _aten.maximum.default,
}


class RemoveMixedTypeOperators(GraphEdit):
    """Make the casts of mixed arithmetic explicit.

    Before    y = aten.add.Tensor(a, b)                        a: int64, b: float32
    After     c = aten._to_copy(a, float32); y = aten.add.Tensor(c, b)
    Ensures   equal values; add, sub, mul, div, minimum and maximum have operands of one dtype,
              which for a true division is a floating point one.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function" or node.target not in _ARITHMETIC:
                continue
            dtype = _computed_in(node)
            for operand, replace in list(operands(node)):
                if operand.meta["val"].dtype != dtype:
                    copy = _aten._to_copy.default
                    replace(insert_before(node, copy, (operand,), {"dtype": dtype}))
                    modified = True
        return modified


def _computed_in(node: Node) -> torch.dtype:
    values = [operand.meta["val"] for operand, _ in operands(node)]
    dtype = promoted_dtype(values)
    divides = node.target is _aten.div.Tensor or (
        node.target is _aten.div.Tensor_mode and node.kwargs.get("rounding_mode") is None
    )
    if divides and not (dtype.is_floating_point or dtype.is_complex):
        return torch.get_default_dtype()
    return dtype
