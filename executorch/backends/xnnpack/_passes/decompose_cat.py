from __future__ import annotations

from typing import Any

from torch.fx import Node

from executorch.backends.xnnpack.utils.quant_utils import (
    is_dequant,
    is_quant,
    tag_as_implicit_q_dq,
)
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.pass_driver import CallPass

_cat = ops.edge.aten.cat.default
_quantized = ops.edge.quantized_decomposed
_MOST = 5  # tensors of one call of XNNPACK


class DecomposeConcatenate(CallPass):
    """Join at most five tensors at a time.

    Before    y = cat([a, b, c, d, e, f], 1)
    After     p = cat([a, b, c, d, e], 1); y = cat([p, f], 1)
    Ensures   between quantized tensors the parts are quantized with the same parameters.
    """

    def change(self, call: Node) -> bool:
        parts: list[Any] = list(call.args[0]) if call.target is _cat else []  # type: ignore
        if len(parts) <= _MOST:
            return False
        quantized = all(map(is_dequant, parts)) and all(map(is_quant, call.users))
        while len(parts) > _MOST:
            joined = insert_before(call, _cat, (parts[:_MOST], *call.args[1:]))
            between = _requantized(call, joined, parts[0]) if quantized else joined
            parts = [between, *parts[_MOST:]]
        replace_node(call, insert_before(call, _cat, (parts, *call.args[1:])))
        return True


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
