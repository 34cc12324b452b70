"""Layers whose activations are quantized at run time: linear layers row by row, convolutions image
by image. pt2e and torchao write them as choose_qparams -> quantize -> dequantize -> layer <-
dequantize <- integer weights. A linear may already be decomposed into a product with permuted
weights between two views."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Node

from executorch.backends.xnnpack.linear import LINEAR, is_rows, operands_of, rows_around
from executorch.backends.xnnpack.lowering import (
    Lowering,
    argument,
    aten,
    extents_of,
    shape_of,
    tensor_of,
)
from executorch.backends.xnnpack.serialization.payload import MAX_TERMS, NO_ID, TOO_MANY_TERMS

# Types of values and kinds of quantization in the payload.
_INT8_WEIGHTS, _INT4_WEIGHTS, _INT4_GROUPS, _DYNAMIC_INT8 = 6, 8, 10, 9
_PER_CHANNEL, _PER_ROW, _PER_GROUP = 1, 3, 4

_CHOOSE = {
    "quantized_decomposed.choose_qparams.tensor",
    "quantized_decomposed.choose_qparams_per_token_asymmetric.default",
    "torchao.choose_qparams_affine.default",
}
_QUANTIZE = {
    "quantized_decomposed.quantize_per_tensor.tensor",
    "quantized_decomposed.quantize_per_token.default",
    "torchao.quantize_affine.default",
}
_DEQUANTIZE = {
    "quantized_decomposed.dequantize_per_tensor.tensor",
    "quantized_decomposed.dequantize_per_token.default",
    "torchao.dequantize_affine.default",
}
_DEQUANTIZE_WEIGHTS = {
    "quantized_decomposed.dequantize_per_channel.default",
    "quantized_decomposed.dequantize_per_channel_group.default",
    "torchao.dequantize_affine.default",
}

# Node -> the constant that it stands for, or None.
Constants = Callable[[Any], Tensor | None]


@dataclass
class DynamicLayer:
    source: Node  # the floating-point input
    view: Node | None  # of the quantized input, as rows
    chain: list[Node]  # all in front that the node is computed together with
    # int8, [out, in], of a convolution [out, in / groups, height, width], of matrices
    # [out, in, count]
    weights: Tensor
    scales: Tensor  # [out] or [out, groups]
    is_4_bit: bool
    bias: Tensor | None
    split: Node | None = None  # the view of the result, which has the dims of the source in front

    def parts(self) -> list[Node]:
        """The calls that are computed together with the layer."""
        return [*self.chain, *([] if self.split is None else [self.split])]


def whole_operators() -> list[Any]:
    """Operators of torchao that must not be decomposed, if torchao has registered them."""
    names = ("choose_qparams_affine", "quantize_affine", "dequantize_affine")
    library = torch.ops.torchao
    return [getattr(library, name).default for name in names if hasattr(library, name)]


def _is(node: Any, names: set[str]) -> bool:
    return isinstance(node, Node) and str(getattr(node.target, "_op", "")) in names


def match(node: Node, constant: Constants) -> DynamicLayer | str | None:
    """The dynamically quantized layer at `node`. A str says why such a layer cannot be lowered;
    None stands for all other nodes."""
    if node.target is aten.convolution.default:
        return _match_convolution(node, constant)
    if node.target is aten.bmm.default:
        return _match_matrices(node, constant)
    if node.target not in LINEAR:
        return None
    x, w, bias_node = operands_of(node)
    chain: list[Node] = []
    if node.target is not aten.linear.default and w.target is aten.permute_copy.default:
        chain.append(w)
        w = cast("Node", w.args[0])
    if not _is(w, _DEQUANTIZE_WEIGHTS) or (node.target is not aten.linear.default and not chain):
        return None
    rows = rows_around(node)
    view = x if x.target is aten.view_copy.default and is_rows(x) else None
    if view is not None:
        chain.append(view)
        x = cast("Node", view.args[0])
    layer = _layer(x, None if rows is not None else view, w, bias_node, chain, constant)
    if isinstance(layer, DynamicLayer) and rows is not None:
        layer.split = rows.split
    return layer


def _match_convolution(node: Node, constant: Constants) -> DynamicLayer | str | None:
    x, w, bias = (cast("Node", a) for a in node.args[:3])
    if not _is(w, _DEQUANTIZE_WEIGHTS) or not _is(x, _DEQUANTIZE):
        return None  # or of static quantization
    transposed = cast("bool", argument(node, "transposed"))
    if tensor_of(node).dim() != 4:
        return "dynamic quantization of a convolution over another number of dims than two"
    if transposed and argument(node, "groups") != 1:
        return "dynamic quantization of a transposed convolution in groups"
    if not transposed and tensor_of(w).shape[1] == 1:
        return "dynamic quantization of a depthwise convolution"
    if "per_channel.default" not in str(w.target) or w.args[3] != int(transposed):
        return "scales of something else than output channels"
    return _layer(x, None, w, bias, [], constant, int(transposed))


def _match_matrices(node: Node, constant: Constants) -> DynamicLayer | str | None:
    x, w = (cast("Node", a) for a in node.args[:2])
    if not _is(w, _DEQUANTIZE_WEIGHTS) or not _is(x, _DEQUANTIZE):
        return None
    if "per_channel.default" not in str(w.target) or w.args[3] != 2:
        return "scales of something else than columns"
    if tensor_of(node).dtype != torch.float32:
        return f"dynamic quantization of matrices times {tensor_of(node).dtype}"
    return _layer(x, None, w, None, [], constant, 2)


def _layer(
    x: Node,
    view: Node | None,
    w: Node,
    bias_node: Any,
    chain: list[Node],
    constant: Constants,
    channel_dim: int = 0,
) -> DynamicLayer | str:
    if not _is(x, _DEQUANTIZE):
        return "integer weights with floating-point activations"
    activations = _match_activations(x)
    if activations is None:
        return "activations quantized in another way than row by row when they are known"
    source = activations[0]
    chain = chain + activations[1]
    bias = constant(bias_node)
    if bias_node is not None and bias is None:
        return "a bias that is not constant"
    weights = _match_weights(w, constant, channel_dim)
    if isinstance(weights, str):
        return weights
    values, scales, is_4_bit = weights
    dtype = tensor_of(source).dtype
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return f"dynamic quantization of {dtype}"
    if dtype == torch.bfloat16:  # for which there are groups only, if need be one in a row
        if not is_4_bit or values[0].numel() % 32:
            return "dynamic quantization of bfloat16, but for weights of 4 bits in groups"
        scales = scales.reshape(len(values), -1)
    inner = w.args[0]
    chain += [w, *([inner] if isinstance(inner, Node) and inner.op == "call_function" else [])]
    return DynamicLayer(source, view, chain, values, scales, is_4_bit, bias)


def parts_of(node: Node, constant: Constants) -> list[Node]:
    """The calls that are lowered together with a layer."""
    layer = match(node, constant)
    return layer.parts() if isinstance(layer, DynamicLayer) else []


def _match_activations(dequantize: Node) -> tuple[Node, list[Node]] | None:
    quantize = dequantize.args[0]
    if not isinstance(quantize, Node) or not _is(quantize, _QUANTIZE):
        return None
    source = cast("Node", quantize.args[0])
    items = [
        n for n in quantize.all_input_nodes if n.target is operator.getitem and n is not source
    ]
    chooses = {cast("Node", n.args[0]) for n in items}
    if len(chooses) != 1:
        return None
    (choose,) = chooses
    if not _is(choose, _CHOOSE) or choose.args[0] is not source:
        return None
    if "choose_qparams.tensor" in str(choose.target) and list(choose.args[1:3]) != [-128, 127]:
        return None
    return source, [choose, *items, quantize, dequantize]


def _match_weights(
    node: Node, constant: Constants, channel_dim: int
) -> tuple[Tensor, Tensor, bool] | str:
    """Integers with the output channels first, scales, and whether they have 4 bits."""
    names = ("input", "scales", "zero_points")
    if "affine" in str(node.target):
        names = ("input", "scale", "zero_point")
    values, scales, zeros = (constant(argument(node, name)) for name in names)
    if values is None or scales is None:
        return "weights that are not constant"
    if zeros is not None and bool(zeros.any()):
        return "weights with zero points"
    low, high = (argument(node, f"quant_{end}") for end in ("min", "max"))
    is_4_bit = low is not None and low >= -8 and high <= 7
    if values.dtype != torch.int8 or (not is_4_bit and high != 127):
        return "weights of another width than 4 and 8 bits"
    values = values.transpose(0, channel_dim)
    n, k = values.shape[0], values[0].numel()
    if k > MAX_TERMS:
        return TOO_MANY_TERMS
    scales = scales.reshape(n, -1) if scales.numel() % n == 0 else scales
    group = k // scales.shape[-1] if scales.dim() == 2 else 0
    if scales.dim() != 2 or (scales.shape[1] > 1 and (group % 32 or not is_4_bit)):
        return "scales of something else than output channels, or groups of 32 4-bit weights"
    return values, scales[:, 0] if scales.shape[1] == 1 else scales, is_4_bit


def packed(weights: Tensor) -> Tensor:
    """4-bit weights [n, k] as bytes [n, (k + 1) / 2]: two to a byte, each plus 8, the first in the
    low bits."""
    raised = (torch.nn.functional.pad(weights, (0, weights.shape[1] % 2)) + 8).to(torch.uint8)
    return raised[:, ::2] | raised[:, 1::2] << 4


def _quantized(to: Lowering, node: Node, rows: Node, floats: int, row_dims: int) -> int:
    """The id of a value's integers, each row of the last `row_dims` dims by itself."""
    payload = to.payload
    dims = payload.values[floats][1]
    number = payload.value(_DYNAMIC_INT8, dims, quantization=(_PER_ROW, [row_dims]))
    to.quantized[rows, row_dims] = number
    to.emit(node, "Convert", floats, number)
    return number


def quantized_image(to: Lowering, node: Node, layer: DynamicLayer) -> int:
    """The id of a convolution's operand, channels last, each image quantized by itself."""
    known = to.quantized.get((layer.source, 3))
    if known is not None:
        return known
    return _quantized(to, node, layer.source, to.read(layer.source, nhwc=True), 3)


def filter_value(to: Lowering, layer: DynamicLayer, laid_out: Tensor) -> int:
    """The id of a convolution's integer weights, laid out with the output channels first."""
    data = to.payload.data(laid_out)
    scales = to.payload.data(layer.scales.float(), "scale_")
    kind = (_PER_CHANNEL, [None, 0, scales, layer.scales.numel()])
    return to.payload.value(_INT8_WEIGHTS, laid_out.shape, constant=data, quantization=kind)


def lower_matrices(to: Lowering, node: Node, layer: DynamicLayer) -> None:
    """Rows times constant matrices [count, in, out], each of which has a scale for each column."""
    weights = layer.weights.transpose(0, 2).contiguous()
    scales = layer.scales.float().repeat(weights.shape[0])
    kind = (_PER_CHANNEL, [None, 2, to.payload.data(scales, "scale_"), scales.numel()])
    data = to.payload.data(weights)
    w_id = to.payload.value(_INT8_WEIGHTS, weights.shape, constant=data, quantization=kind)
    x_id = to.quantized.get((layer.source, 1))
    if x_id is None:
        x_id = _quantized(to, node, layer.source, to.read(layer.source), 1)
    to.emit(node, "BatchMatrixMultiply", x_id, w_id, to.write(node))


def lower_linear(to: Lowering, node: Node, layer: DynamicLayer) -> None:
    payload = to.payload
    n, k = layer.weights.shape
    data = payload.data(packed(layer.weights) if layer.is_4_bit else layer.weights)
    if layer.scales.dim() == 2:
        scales = payload.data(layer.scales.to(torch.bfloat16), "scale_")
        count = layer.scales.numel()
        fields = [None, 0, k // layer.scales.shape[1], None, scales, count]
        kind = (_PER_GROUP, fields)
        datatype = _INT4_GROUPS
    else:
        scales = payload.data(layer.scales.float(), "scale_")
        kind = (_PER_CHANNEL, [None, 0, scales, n])
        datatype = _INT4_WEIGHTS if layer.is_4_bit else _INT8_WEIGHTS
    rows = layer.view or layer.source
    x_id = to.quantized.get((rows, 1))
    if x_id is None:
        floats = to.read(layer.source)
        if layer.view is not None:
            shape, source = extents_of(layer.view), floats
            floats = payload.value(payload.values[source][0], shape_of(layer.view))
            to.emit(node, "StaticReshape", len(shape), shape, source, floats, 0)
        x_id = _quantized(to, node, rows, floats, 1)
    w_id = payload.value(datatype, [n, k], constant=data, quantization=kind)
    bias_id = NO_ID if layer.bias is None else payload.constant(layer.bias.float())
    result, bounds = to.with_activation(layer.split or node)
    ids = [x_id, w_id, bias_id, to.write(result), 0]
    to.emit(node, "FullyConnected", *ids, bounds=bounds)
