"""Matrix products."""

from __future__ import annotations

from typing import cast

import torch
from torch.fx import Node

from executorch.backends.xnnpack.linear import operands_of
from executorch.backends.xnnpack.lowering import Lowering, aten, tensor_of
from executorch.backends.xnnpack.quantized import (
    DynamicLayer,
    lower_linear,
    lower_matrices,
    match,
)
from executorch.backends.xnnpack.rules import lowers
from executorch.backends.xnnpack.serialization.payload import NO_ID
from executorch.backends.xnnpack.static_quantization import bias_value, weights_value

_TRANSPOSED_WEIGHTS = 1


def _not_linear(node: Node) -> str | None:
    x, w, bias = operands_of(node)
    if node.kwargs.get("alpha", 1) != 1 or node.kwargs.get("beta", 1) != 1:
        return "alpha or beta other than 1"
    if not _is_constant(w) and tensor_of(node).dtype != torch.float32:
        return "weights that are not constant, in another type than float32"
    if bias is not None and _is_constant(w) and not _is_constant(bias):
        return "a bias that is not constant"
    if bias is not None and not _is_vector(bias, tensor_of(node).shape[-1]):
        return "a bias without exactly one number for each output"
    if tensor_of(x).dim() < 1 or tensor_of(w).dim() != 2:
        return "weights that are not a matrix"
    return None


def _is_vector(bias: Node, n: int) -> bool:
    """Whether a bias has the shape [n]; a constant may have [1, n]."""
    shape = list(tensor_of(bias).shape)
    return shape == [n] or (shape == [1, n] and _is_constant(bias))


def _is_constant(node: Node) -> bool:
    if node.target is aten.permute_copy.default:
        node = cast("Node", node.args[0])
    return bool(node.meta.get("is_constant"))


@lowers(aten.linear.default, whole=True, integers="product", unless=_not_linear)
@lowers(aten.addmm.default, integers="product", unless=_not_linear)
@lowers(aten.mm.default, integers="product", unless=_not_linear)
def _linear(to: Lowering, node: Node) -> None:
    layer = match(node, to.constant)
    if isinstance(layer, DynamicLayer):
        lower_linear(to, node, layer)
        return
    x, w, bias = operands_of(node)
    result = node
    if node in to.rows:
        x, result = to.rows[node].source, to.rows[node].split
    call = to.static.get(node)
    if call is not None and call.weights is not None:
        ids = [to.read(x), weights_value(to, call.weights, call.weights.values, 0)]
        bias_data = to.constant(bias)
        ids.append(NO_ID if bias_data is None else bias_value(to, call.weights, x, bias_data))
        result, bounds = to.with_activation(result)
        to.emit(node, "FullyConnected", *ids, to.write(result), 0, bounds=bounds)
        return
    weights_id, flags = _weights(to, node, w)
    ids = [to.read(x), weights_id, NO_ID if bias is None else _bias(to, bias)]
    result, bounds = to.with_activation(result)
    to.emit(node, "FullyConnected", *ids, to.write(result), flags, bounds=bounds)


def _weights(to: Lowering, node: Node, w: Node) -> tuple[int, int]:
    """The id of the weights, and the node's flags."""
    by_rows = node.target is aten.linear.default  # [out, in]
    weights = to.constant(w)
    if weights is None:
        return to.read(w), 0 if by_rows else _TRANSPOSED_WEIGHTS
    if not by_rows and weights.t().is_contiguous():  # so the bytes lie
        weights, by_rows = weights.t(), True
    return to.payload.constant(weights), 0 if by_rows else _TRANSPOSED_WEIGHTS


def _bias(to: Lowering, bias: Node) -> int:
    tensor = to.constant(bias)
    if tensor is None:
        return to.read(bias)
    tensor = tensor.reshape(-1)
    # Products of bfloat16 are summed up in float.
    return to.payload.constant(tensor.float() if tensor.dtype == torch.bfloat16 else tensor)


@lowers(aten.bmm.default, config="BMMConfig")
def _bmm(to: Lowering, node: Node) -> None:
    layer = match(node, to.constant)
    if isinstance(layer, DynamicLayer):
        lower_matrices(to, node, layer)
        return
    a, b = (cast("Node", x) for x in node.args[:2])
    to.emit(node, "BatchMatrixMultiply", to.read(a), to.read(b), to.write(node))
