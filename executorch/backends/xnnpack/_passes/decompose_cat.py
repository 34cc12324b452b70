from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node

from executorch.backends.xnnpack.utils.quant_utils import (
    is_dequant,
    is_quant,
    tag_as_implicit_q_dq,
)
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import GraphEdit, insert_before, replace_node

_cat = ops.edge.aten.cat.default
_quantized = ops.edge.quantized_decomposed
_MOST = 5  # tensors of one call of XNNPACK


class DecomposeConcatenate(GraphEdit):
    """Join at most five tensors at a time.

    Before    y = cat([a, b, c, d, e, f], 1)
    After     p = cat([a, b, c, d, e], 1); y = cat([p, f], 1)
    Ensures   between quantized tensors the parts are quantized with the same parameters.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.find_nodes(op="call_function", target=_cat)):
            parts: list[Any] = list(node.args[0])
            if len(parts) <= _MOST:
                continue
            quantized = all(map(is_dequant, parts)) and all(map(is_quant, node.users))
            while len(parts) > _MOST:
                joined = insert_before(node, _cat, (parts[:_MOST], *node.args[1:]))
                between = _requantized(node, joined, parts[0]) if quantized else joined
                parts = [between, *parts[_MOST:]]
            replace_node(node, insert_before(node, _cat, (parts, *node.args[1:])))
            modified = True
        return modified


def _requantized(anchor: Node, joined: Node, like: Node) -> Node:
    """`joined` quantized and dequantized with the parameters of the dequantization `like`."""
    keywords = {k: v for k, v in like.kwargs.items() if k != "out_dtype"}
    parameters = like.args[1:]
    quantize = insert_before(
        anchor, _quantized.quantize_per_tensor.default, (joined, *parameters), keywords
    )
    dequantize = insert_before(
        anchor, _quantized.dequantize_per_tensor.default, (quantize, *parameters), like.kwargs
    )
    for node in (quantize, dequantize):
        tag_as_implicit_q_dq(node)
    return dequantize
