"""Poolings, means and resizing of images."""

from __future__ import annotations

import operator
from math import prod
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack.lowering import (
    Lowering,
    argument,
    aten,
    extents_of,
    is_static,
    shape_of,
    tensor_of,
)
from executorch.backends.xnnpack.operators.images import pair
from executorch.backends.xnnpack.rules import lowers
from executorch.backends.xnnpack.serialization.payload import (
    MAX_EXTENT,
    MAX_TERMS,
    NO_ID,
    TOO_LARGE_A_WINDOW,
    TOO_MANY_TERMS,
)
from executorch.backends.xnnpack.static_quantization import Weights, weights_value

_ALIGN_CORNERS, _KEEP_DIMS = 8, 64


def _not_pooling(node: Node) -> str | None:
    names = ("kernel_size", "stride", "padding", "dilation")
    if any(n > MAX_EXTENT for name in names for n in pair(argument(node, name) or 0)):
        return TOO_LARGE_A_WINDOW
    if tensor_of(node.args[0]).dim() != 4:  # type: ignore[arg-type]
        return "a pooling of other tensors than batches of images"
    return None


def _not_ceil(node: Node) -> str | None:
    if argument(node, "ceil_mode") and not is_static(tensor_of(node).shape[2:]):
        return "ceil mode with symbolic extents"
    return None


def _not_max_pooling(node: Node) -> str | None:
    if node.target is aten.max_pool2d_with_indices.default and any(
        u.args[1] != 0 for u in node.users
    ):
        return "the indices of a max pooling are read"
    if _skips_pixels(argument(node, "kernel_size"), argument(node, "stride")):
        return "a max pooling whose stride exceeds its window, which XNNPACK does not load"
    return _not_ceil(node) or _not_pooling(node)


def _padding(node: Node) -> list[int]:
    """On top, to the right, at the bottom and to the left. In ceil mode as far as the last window
    reaches."""
    size = pair(argument(node, "kernel_size"))
    stride = pair(argument(node, "stride") or size)
    before, dilation = (pair(argument(node, name) or 0) for name in ("padding", "dilation"))
    after = list(before)
    if argument(node, "ceil_mode"):
        extents = shape_of(cast("Node", node.args[0]))[2:], shape_of(node)[2:]
        for i, (n_in, n_out) in enumerate(zip(*extents, strict=True)):
            reach = (n_out - 1) * stride[i] + (dilation[i] or 1) * (size[i] - 1) + 1
            after[i] = max(before[i], reach - n_in - before[i])
    return [before[0], after[1], after[0], before[1]]


def _skips_pixels(kernel_size: Any, stride: Any = None) -> bool:
    """Whether some stride is larger than the window, so that pixels are skipped."""
    size = pair(kernel_size)
    return any(s < step for s, step in zip(size, pair(stride or size), strict=True))


def _stays_whole(node: Node, program: ExportedProgram) -> bool:
    """Whether to keep a call of aten.max_pool2d from being decomposed."""
    ceil_mode = len(node.args) > 5 and bool(node.args[5])
    is_computed = not ceil_mode or is_static(tensor_of(node).shape[2:])
    return tensor_of(node).dim() == 4 and is_computed and not _skips_pixels(*node.args[1:3])


@lowers(
    aten.max_pool2d.default,
    (aten.max_pool2d_with_indices.default,),
    config="MaxPool2dConfig",
    whole=_stays_whole,
    integers="moves",
    passes_on=("max_pool2d",),
    unless=_not_max_pooling,
)
def _max_pool(to: Lowering, node: Node) -> None:
    x = cast("Node", node.args[0])
    size = pair(argument(node, "kernel_size"))
    stride = pair(argument(node, "stride") or size)
    dilation = pair(argument(node, "dilation"))
    result = node
    if node.target is aten.max_pool2d_with_indices.default:
        (result,) = node.users
        to.skip(result)
    ids = [to.read(x, nhwc=True), to.write(result, nhwc=True)]
    to.emit(node, "MaxPooling2d", *_padding(node), *size, *stride, *dilation, *ids, _KEEP_DIMS)


def _not_average(node: Node) -> str | None:
    if argument(node, "divisor_override"):
        return "an average pooling that has a divisor_override"
    return _not_ceil(node) or _not_pooling(node)


def _not_average_of_integers(node: Node) -> str | None:
    if any(pair(argument(node, "padding"))) and not argument(node, "count_include_pad"):
        return "an average pooling of integers that does not count padding"
    if prod(pair(argument(node, "kernel_size"))) > MAX_TERMS:
        return TOO_MANY_TERMS
    if refusal := _not_ceil(node) or _not_pooling(node):
        return refusal
    top, right, bottom, left = _padding(node)
    if right > left or bottom > top:
        return "an average pooling of integers whose last windows are cut off"
    return None


@lowers(
    aten.avg_pool2d.default,
    integers="average",
    passes_on=("adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool2d"),
    unless=_not_average,
    unless_integers=_not_average_of_integers,
)
def _average(to: Lowering, node: Node) -> None:
    x = cast("Node", node.args[0])
    size = pair(argument(node, "kernel_size"))
    stride = pair(argument(node, "stride") or size)
    padding = _padding(node)
    if node in to.static:
        _average_integers(to, node, x, [*padding, *size, *stride])
        return
    x_id = to.read(x, nhwc=True)
    if argument(node, "count_include_pad"):
        x_id, padding = _padded(to, x_id, padding)
    y_id = to.write(node, nhwc=True)
    to.emit(node, "AvgPooling2d", *padding, *size, *stride, 0, 0, x_id, y_id, _KEEP_DIMS)


def _padded(to: Lowering, x: int, padding: list[int]) -> tuple[int, list[int]]:
    """The image with zeros around it, which count, and the padding that is left: what windows cover
    beyond them does not count."""
    top, right, bottom, left = padding
    if top == left == 0:
        return x, padding
    around = [0, top, left, 0]
    dims = [n + 2 * m for n, m in zip(to.payload.values[x][1], around, strict=True)]
    wide = to.like(x, dims)
    to.payload.node("StaticConstantPad", around, around, 0.0, x, wide)
    return wide, [0, right - left, bottom - top, 0]


def _average_integers(to: Lowering, node: Node, x: Node, window: list[int]) -> None:
    """Lower an average of integers as a depthwise convolution with ones, whose scale is 1 /
    divisor: XNNPACK's average pooling takes floating-point values only."""
    size, channels = window[4:6], shape_of(x)[1]
    divisor = argument(node, "divisor_override") or size[0] * size[1]
    ones = torch.ones((1, *size, channels), dtype=torch.int8)
    filter_id = weights_value(to, Weights(ones, torch.tensor([1 / divisor]), None), ones, 3)
    groups = [1, 1, 1, 1, channels, 0, 0]  # dilation, channels of a group, groups, adjustment
    ids = [to.read(x, nhwc=True), filter_id, NO_ID, to.write(node, nhwc=True)]
    to.emit(node, "DepthwiseConv2d", *window, *groups, *ids)


def _not_mean(node: Node) -> str | None:
    x = tensor_of(node.args[0])  # type: ignore[arg-type]
    dims = cast("list[int] | None", node.args[1]) or []  # none stand for all
    if x.dim() != 4 or sorted(d % 4 for d in dims) != [2, 3]:
        return "a mean over other dims than height and width of images"
    if any(isinstance(n, int) and n == 0 for n in x.shape[2:]):
        return "a mean over no elements"
    if not argument(node, "keepdim") and not is_static(x.shape[1:2]):
        return "a mean without keepdim over a symbolic number of channels"
    return None


@lowers(
    aten.mean.dim,
    config="MeanDimConfig",
    integers="average",
    passes_on=("mean",),
    unless=_not_mean,
)
def _mean(to: Lowering, node: Node) -> None:
    x_id = to.read(cast("Node", node.args[0]), nhwc=True)
    if argument(node, "keepdim"):
        to.emit(node, "GlobalAvgPooling2d", x_id, to.write(node, nhwc=True), _KEEP_DIMS)
        return
    images, channels = shape_of(node)
    y_id = to.write(node)
    mean = to.like(y_id, [images, 1, 1, channels])
    transposed = to.like(y_id, [images, channels, 1, 1])
    # Only the last node gets the debug handle: its result has the dims of the graph's value, which
    # recorded values are compared with.
    to.payload.node("GlobalAvgPooling2d", x_id, mean, _KEEP_DIMS)
    to.payload.node("StaticTranspose", 4, [0, 3, 1, 2], mean, transposed)
    to.emit(node, "StaticReshape", 2, extents_of(node), transposed, y_id)


def _not_extreme(node: Node) -> str | None:
    x = tensor_of(node.args[0])  # type: ignore[arg-type]
    dims = _dims(node)
    if x.dim() != 4 or not dims or any(d not in (2, 3) for d in dims):
        return "a maximum over other dims than height and width of images"
    if not argument(node, "keepdim") or not is_static(x.shape[2:]):
        return "a maximum without keepdim, or of an image with symbolic extents"
    return None


def _dims(node: Node) -> list[int]:
    dims = node.args[1] if len(node.args) > 1 else []
    return [d % 4 for d in (dims if isinstance(dims, (list, tuple)) else [dims])]  # type: ignore


@lowers(aten.amax.default, unless=_not_extreme)
def _amax(to: Lowering, node: Node) -> None:
    _largest(to, node, node)


def _largest(to: Lowering, node: Node, result: Node) -> None:
    x = cast("Node", node.args[0])
    size = [n if i + 2 in _dims(node) else 1 for i, n in enumerate(shape_of(x)[2:])]
    ids = [to.read(x, nhwc=True), to.write(result, nhwc=True)]
    to.emit(node, "MaxPooling2d", 0, 0, 0, 0, *size, *size, 1, 1, *ids, _KEEP_DIMS)


def _not_arg_max(node: Node) -> str | None:
    results = {user.args[1] for user in node.users}
    if 0 not in results:
        return "only the indices of a maximum are read"
    if 1 in results and tensor_of(node).dtype != torch.float32:
        return "the indices of a maximum exist in float32 only"
    return _not_extreme(node)


@lowers(aten.max.dim, unless=_not_arg_max)
def _arg_max(to: Lowering, node: Node) -> None:
    items = {user.args[1]: user for user in node.users if user.target is operator.getitem}
    if 1 not in items:
        _largest(to, node, items[0])
        return
    x = cast("Node", node.args[0])
    size = [n if i + 2 in _dims(node) else 1 for i, n in enumerate(shape_of(x)[2:])]
    ids = [to.read(x, nhwc=True), *(to.write(items[i], nhwc=True) for i in (0, 1))]
    to.emit(node, "ArgMaxPooling2d", 0, 0, 0, 0, *size, *ids, _KEEP_DIMS)


def _not_resize(node: Node) -> str | None:
    size = tensor_of(node).shape[2:]
    if not is_static(size):
        return "symbolic extents"
    scales = argument(node, "scale_factors")
    if not scales or argument(node, "align_corners"):
        return None
    # The payload has no factor: its operator divides the extents, of which one was rounded here.
    extents = tensor_of(node.args[0]).shape[2:]  # type: ignore[arg-type]
    if any(n * scale != m for n, scale, m in zip(extents, scales, size, strict=True)):
        return "a scale factor by which an extent is not multiplied exactly"
    return None


@lowers(
    aten.upsample_bilinear2d.vec,
    config="UpsampleBilinear2dConfig",
    whole=lambda node, program: _not_resize(node) is None,
    unless=_not_resize,
)
def _upsample(to: Lowering, node: Node) -> None:
    flags = _ALIGN_CORNERS if argument(node, "align_corners") else 0
    x_id = to.read(cast("Node", node.args[0]), nhwc=True)
    size = shape_of(node)[2:]
    to.emit(node, "StaticResizeBilinear2D", *size, x_id, to.write(node, nhwc=True), flags)
