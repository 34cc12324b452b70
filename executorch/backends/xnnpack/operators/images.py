"""Convolutions and batch norms, whose channels are the last dim of the payload's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Node

from executorch.backends.xnnpack.lowering import (
    FUSED_ACTIVATION,
    Lowering,
    argument,
    aten,
    extents_of,
    shape_of,
    tensor_of,
)
from executorch.backends.xnnpack.quantized import (
    DynamicLayer,
    filter_value,
    match,
    quantized_image,
)
from executorch.backends.xnnpack.rules import lowers
from executorch.backends.xnnpack.serialization.payload import (
    MAX_CONVOLUTION,
    NO_ID,
    TOO_LARGE_A_WINDOW,
)
from executorch.backends.xnnpack.static_quantization import bias_value, weights_value

BATCH_NORM = aten._native_batch_norm_legit_no_training.default


def pair(value: Any, alone: int | None = None) -> list[int]:
    """Height and width from an operator's argument. For a single number, the height is `alone`, or
    the same number."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) == 1:
        return [values[0] if alone is None else alone, *values]
    return values


def _not_convolution(node: Node) -> str | None:
    w, bias = node.args[1:3]
    rank = tensor_of(node).dim()
    if rank not in (3, 4):
        return "a convolution over more than two dims"
    if rank == 3 and sum(not isinstance(n, int) for n in tensor_of(node).shape) > 1:
        return "a shape with more than one symbolic extent"
    if any(n > MAX_CONVOLUTION for name in _ATTRIBUTES[rank] for n in pair(argument(node, name))):
        return TOO_LARGE_A_WINDOW
    for each in (w, bias):
        if isinstance(each, Node) and not each.meta.get("is_constant"):
            return "weights that are not constant"
    return None


@dataclass
class _Kernel:
    """A convolution's filter, with the output channels first, and its bias."""

    filter: Tensor
    bias: Tensor | None


def _kernel(to: Lowering, node: Node, filter: Tensor) -> _Kernel:
    bias = to.constant(node.args[2])
    if tensor_of(node).dim() == 3:
        filter = filter.unsqueeze(2)
    if argument(node, "transposed"):  # (ic, oc / g, h, w), to the form of the others by groups
        groups, (ic, oc, *size) = argument(node, "groups"), filter.shape
        split = filter.reshape(groups, ic // groups, oc, *size).transpose(1, 2)
        filter = split.reshape(-1, ic // groups, *size)
    return _Kernel(filter, None if bias is None else bias.float())


def _with_batch_norm(to: Lowering, norm: Node, kernel: _Kernel) -> _Kernel:
    factor, shift = _factor_and_shift(to, norm)
    bias = shift if kernel.bias is None else kernel.bias * factor + shift
    return _Kernel(kernel.filter * factor.reshape(-1, 1, 1, 1), bias)


def _factor_and_shift(to: Lowering, norm: Node) -> tuple[Tensor, Tensor]:
    """A batch norm as x * factor + shift."""
    scale, shift, mean, variance = (to.constant(n) for n in norm.args[1:5])
    assert mean is not None and variance is not None
    factor = torch.rsqrt(variance.float() + cast("float", norm.args[6]))
    factor = factor if scale is None else factor * scale.float()
    moved = -mean.float() * factor
    return factor, moved if shift is None else moved + shift.float()


@lowers(aten.convolution.default, integers="product", unless=_not_convolution)
def _convolution(to: Lowering, node: Node) -> None:
    x, w_node = (cast("Node", a) for a in node.args[:2])
    call = to.static.get(node)
    integers = call.weights if call is not None else None
    zeros = [0, 0, 0, 0]  # around the image: left, right, top, bottom
    if call is not None and call.padding is not None:
        x, widths = (cast("Any", a) for a in call.padding.args[:2])
        zeros = [*widths, 0, 0][:4]
    layer = match(node, to.constant)
    if isinstance(layer, DynamicLayer):
        _dynamic_convolution(to, node, layer)
        return
    w = cast("Tensor", to.constant(w_node)).float() if integers is None else integers.values
    kernel, result = _kernel(to, node, w), node
    norm = None if FUSED_ACTIVATION in node.meta else to.only_user(node)
    if norm is not None and norm.target is BATCH_NORM:
        kernel = _with_batch_norm(to, norm, kernel)
        (result,) = norm.users
        to.skip(norm, result)
    transposed, w = argument(node, "transposed"), kernel.filter
    depthwise = not transposed and w.shape[1] == 1 and argument(node, "groups") > 1
    laid_out = (w.transpose(0, 1) if depthwise else w).permute(0, 2, 3, 1)
    bias_id = NO_ID
    if integers is not None:
        filter_id = weights_value(to, integers, laid_out, 3 if depthwise else 0)
        if kernel.bias is not None:
            bias_id = bias_value(to, integers, x, kernel.bias)
    else:
        filter_id = to.payload.constant(laid_out)
        if kernel.bias is not None:
            bias_id = to.payload.constant(kernel.bias)
    result, bounds = to.with_activation(result)
    kind = "ConvTranspose2d" if transposed else "DepthwiseConv2d" if depthwise else "Conv2d"
    x_id, y_id = to.read(x, nhwc=True), to.write(result, nhwc=True)
    is_1d = tensor_of(node).dim() == 3
    flat_id = y_id
    if is_1d:  # an image of one row
        x_id = _reshaped(to, node, x_id, _row_of(extents_of(x)), _row_of(shape_of(x)))
        y_id = to.like(y_id, _row_of(shape_of(node)))
    fields = [*_window(node, w, zeros), x_id, filter_id, bias_id, y_id]
    to.emit(node, kind, *fields, bounds=bounds)
    if is_1d:
        n, c, length = extents_of(node)
        to.emit(node, "StaticReshape", 3, [n, length, c], y_id, flat_id)


def _dynamic_convolution(to: Lowering, node: Node, layer: DynamicLayer) -> None:
    """Lower a convolution of images that are quantized at run time. A batch norm after it is
    lowered separately."""
    filter_id = filter_value(to, layer, layer.weights.permute(0, 2, 3, 1))
    bias_id = NO_ID if layer.bias is None else to.payload.constant(layer.bias.float())
    x_id = quantized_image(to, node, layer)
    result, bounds = to.with_activation(node)
    fields = [*_window(node, layer.weights), x_id, filter_id, bias_id, to.write(result, nhwc=True)]
    kind = "ConvTranspose2d" if argument(node, "transposed") else "Conv2d"
    to.emit(node, kind, *fields, bounds=bounds)


def _row_of(shape: list[int]) -> list[int]:
    n, c, length = shape
    return [n, 1, length, c]


def _reshaped(to: Lowering, node: Node, x_id: int, shape: list[int], bounds: list[int]) -> int:
    y_id = to.like(x_id, bounds)
    to.emit(node, "StaticReshape", len(shape), shape, x_id, y_id)
    return y_id


def _window(node: Node, w: Tensor, zeros: Sequence[int] = (0, 0, 0, 0)) -> list[int]:
    """The fields of a convolution's node before its ids. `w` has the output channels first; `zeros`
    (left, right, top, bottom) are added to the padding."""
    stride, padding, dilation, adjustment = (
        pair(argument(node, name), alone)
        for name, alone in _ATTRIBUTES[tensor_of(node).dim()].items()
    )
    (h, v), groups = padding, argument(node, "groups")
    channels = [w.shape[1], w.shape[0] // groups]
    left, right, top, bottom = zeros
    around = [h + top, v + right, h + bottom, v + left]
    fields = [*around, *w.shape[2:], *stride, *dilation, *channels, groups]
    return fields + (adjustment if argument(node, "transposed") else [0, 0])


# By the rank of a value: its window's attributes, and their values for the height of a 1-d
# convolution, which is lowered as an image of one row.
_ATTRIBUTES: dict[int, dict[str, int | None]] = {
    3: {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0},
    4: dict.fromkeys(("stride", "padding", "dilation", "output_padding")),
}


def follows_convolution(norm: Node) -> bool:
    """Whether a batch norm is folded into the convolution before it."""
    x = norm.args[0]
    return (
        isinstance(x, Node)
        and x.target is aten.convolution.default
        and len(x.users) == 1
        and _not_convolution(x) is None
    )


def _not_batch_norm(node: Node) -> str | None:
    if any(isinstance(p, Node) and not p.meta.get("is_constant") for p in node.args[1:5]):
        return "parameters that are not constant"
    if [user.args[1] for user in node.users] != [0]:
        return "the statistics of the batch norm are read"
    return None


@lowers(BATCH_NORM, unless=_not_batch_norm)
def _batch_norm(to: Lowering, node: Node) -> None:
    """Lower a batch norm that is not folded, as a product and a sum; scale and shift have the
    channels at the dim where the payload's value has them."""
    x, (result,) = cast("Node", node.args[0]), node.users
    rank, nhwc, dtype = tensor_of(x).dim(), to.is_nhwc(x), tensor_of(node).dtype
    channels = [-1] if nhwc else [-1] + [1] * (rank - 2)
    factor, shift = (
        to.payload.constant(t.to(dtype).reshape(channels)) for t in _factor_and_shift(to, node)
    )
    x_id = to.read(x, nhwc)
    result, bounds = to.with_activation(result)
    product = to.like(x_id, to.payload.values[x_id][1])
    to.emit(node, "Multiply", x_id, factor, product)
    to.emit(node, "Add", product, shift, to.write(result, nhwc), bounds=bounds)
