from __future__ import annotations

from torch.fx import Node

from executorch.backends.xnnpack.utils.quant_utils import (
    is_dequant,
    is_dynamic_qdq,
    is_per_tensor,
    is_quant,
    tag_as_implicit_q_dq,
)
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before
from executorch.exir.graph.pass_driver import CallPass

_quantized = ops.edge.quantized_decomposed


class InsertPadQDQPass(CallPass):
    """Quantize what pads a quantized image, by the parameters of the image.

    Before    y = conv(constant_pad_nd(dequantize(x), pads))
    After     y = conv(dequantize(quantize(constant_pad_nd(dequantize(x), pads))))
    Ensures   equal values: zero is a value of every such quantization.
    Leaves    pads whose result is quantized already, those filled with another number than zero,
              and parameters that are chosen at run time or differ by channel.
    """

    def change(self, call: Node) -> bool:
        if call.target is not ops.edge.aten.constant_pad_nd.default:
            return False
        x = call.args[0]
        filled = call.args[2] if len(call.args) > 2 else call.kwargs.get("value", 0)
        if filled or not isinstance(x, Node) or not _is_static(x):
            return False
        if any(is_quant(user) for user in call.users):
            return False
        _requantize(call, x)
        return True


def _is_static(x: Node) -> bool:
    return is_dequant(x) and is_per_tensor(x) and not is_dynamic_qdq(x)


def _requantize(pad: Node, like: Node) -> None:
    keywords = {k: v for k, v in like.kwargs.items() if k != "out_dtype"}
    readers = list(pad.users)
    quantize = insert_before(
        pad.next, _quantized.quantize_per_tensor.default, (pad, *like.args[1:]), keywords
    )
    dequantize = insert_before(
        quantize.next,
        _quantized.dequantize_per_tensor.default,
        (quantize, *like.args[1:]),
        like.kwargs,
    )
    for node in (quantize, dequantize):
        tag_as_implicit_q_dq(node)
    for reader in readers:
        reader.replace_input_with(pad, dequantize)
