"""The operators that are lowered: one function each, and why a call of it is not."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.fx import Node

from executorch.backends.xnnpack.lowering import (
    CLAMPS,
    Lowering,
    argument,
    aten,
    clamp_bounds,
    extents_of,
    is_static,
    lowers,
    shape_of,
    tensor_of,
)
from executorch.backends.xnnpack.quantized import (
    LINEAR,
    DynamicLinear,
    lower_linear,
    match,
    operands_of,
)
from executorch.backends.xnnpack.serialization.payload import NO_ID
from executorch.backends.xnnpack.static_quantization import bias_value, weights_value

_TRANSPOSED_WEIGHTS, _ALIGN_CORNERS, _KEEP_DIMS = 1, 8, 64
_MAX_CONCATENATED = 5

_UNARY = {
    aten.sigmoid.default: "Sigmoid",
    aten.tanh.default: "Tanh",
    aten.exp.default: "Exp",
    aten.log.default: "Log",
    aten.floor.default: "Floor",
    aten.ceil.default: "Ceiling",
    aten.sqrt.default: "SquareRoot",
    aten.rsqrt.default: "ReciprocalSquareRoot",
    aten.neg.default: "Negate",
    aten.abs.default: "Abs",
    aten.hardswish.default: "Hardswish",
    aten.sin.default: "Sin",
    aten.cos.default: "Cos",
}
_BINARY = {
    aten.add.Tensor: "Add",
    aten.sub.Tensor: "Subtract",
    aten.mul.Tensor: "Multiply",
    aten.div.Tensor: "Div",
    aten.minimum.default: "Minimum",
    aten.maximum.default: "Maximum",
    aten.add.Scalar: "Add",
    aten.sub.Scalar: "Subtract",
    aten.mul.Scalar: "Multiply",
    aten.div.Scalar: "Div",
}


@lowers(*_UNARY)
def _unary(to: Lowering, node: Node) -> None:
    to.unary(node, _UNARY[node.target])


def _not_gelu(node: Node) -> str | None:
    if argument(node, "approximate") != "none":
        return "the payload's gelu is the exact one, not its tanh approximation"
    return "gelu exists in float32 only" if tensor_of(node).dtype != torch.float32 else None


@lowers(aten.gelu.default, unless=_not_gelu)
def _gelu(to: Lowering, node: Node) -> None:
    to.unary(node, "Gelu")


@lowers(*CLAMPS)
def _clamp(to: Lowering, node: Node) -> None:
    to.unary(node, "Clamp", bounds=clamp_bounds(node))


@lowers(aten.leaky_relu.default)
def _leaky_relu(to: Lowering, node: Node) -> None:
    to.unary(node, "LeakyReLU", float(argument(node, "negative_slope")))


@lowers(
    aten.pow.Tensor_Scalar,
    unless=lambda node: None if node.args[1] == 2 else "only squares, not other powers",
)
def _square(to: Lowering, node: Node) -> None:
    to.unary(node, "Square")


def _not_softmax(node: Node) -> str | None:
    rank = tensor_of(node).dim()
    if argument(node, "half_to_float"):
        return "softmax that changes the type"
    return None if node.args[1] in (-1, rank - 1) else "softmax along another than the last dim"


@lowers(aten._softmax.default, unless=_not_softmax)
def _softmax(to: Lowering, node: Node) -> None:
    to.unary(node, "Softmax", nhwc=False)


def _not_binary(node: Node) -> str | None:
    alpha = argument(node, "alpha", 1)
    return None if alpha == 1 else "alpha other than 1"


@lowers(*_BINARY, unless=_not_binary)
def _binary(to: Lowering, node: Node) -> None:
    a, b = cast("tuple[Node, Any]", node.args[:2])
    if isinstance(b, Node):
        same = shape_of(a) == shape_of(b) and a not in to.tensors and b not in to.tensors
        nhwc = same and (to.is_nhwc(a) or to.is_nhwc(b))
        ids = [to.read(x, nhwc, like=node) for x in (a, b)]
    else:
        nhwc = to.is_nhwc(a)
        number = torch.tensor([float(b)], dtype=tensor_of(node).dtype)
        ids = [to.read(a, nhwc), to.payload.constant(number)]
    takes_bounds = node.target not in (aten.minimum.default, aten.maximum.default)
    result, bounds = to.with_activation(node) if takes_bounds else (node, None)
    to.emit(node, _BINARY[node.target], *ids, to.write(result, nhwc), bounds=bounds)


# ---- moves ----


@lowers(aten.permute_copy.default)
def _permute(to: Lowering, node: Node) -> None:
    rank = tensor_of(node).dim()
    perm = [d % rank for d in cast("list[int]", node.args[1])]
    to.unary(node, "StaticTranspose", rank, perm, nhwc=False)


def _not_reshape(node: Node) -> str | None:
    shape = tensor_of(node).shape
    if 0 in shape:
        return "no elements"
    if sum(not isinstance(extent, int) for extent in shape) > 1:
        return "a shape with more than one symbolic extent"
    return None


@lowers(
    aten.view_copy.default,
    aten.unsqueeze_copy.default,
    aten.squeeze_copy.dims,
    unless=_not_reshape,
)
def _reshape(to: Lowering, node: Node) -> None:
    shape = extents_of(node)
    to.unary(node, "StaticReshape", len(shape), shape, nhwc=False)


def _not_slice(node: Node) -> str | None:
    if argument(node, "step") != 1:
        return "a step other than 1"
    static = is_static(tensor_of(node).shape) and is_static(tensor_of(node.args[0]).shape)  # type: ignore[arg-type]
    if not static or 0 in tensor_of(node).shape:
        return "a shape with symbolic extents or no elements"
    return None


@lowers(aten.slice_copy.Tensor, unless=_not_slice)
def _slice(to: Lowering, node: Node) -> None:
    x = cast("Node", node.args[0])
    rank, extents = tensor_of(x).dim(), shape_of(x)
    dim, start = argument(node, "dim") % rank, argument(node, "start") or 0
    offsets = [0] * rank
    extent = extents[dim]
    offsets[dim] = min(max(start + extent if start < 0 else start, 0), extent)
    to.unary(node, "StaticSlice", rank, offsets, shape_of(node), nhwc=False)


def _not_concatenation(node: Node) -> str | None:
    parts = cast("list[Node]", node.args[0])
    if any(tensor_of(p).dim() != tensor_of(node).dim() for p in parts):
        return "an empty part of another rank"
    return None if len(parts) > 1 else "a single part"


@lowers(aten.cat.default, unless=_not_concatenation)
def _concatenate(to: Lowering, node: Node) -> None:
    parts = cast("list[Node]", node.args[0])
    axis = (argument(node, "dim") or 0) % tensor_of(node).dim()
    nhwc = all(to.is_nhwc(p) for p in parts)
    at = (0, 3, 1, 2)[axis] if nhwc else axis
    ids = [to.read(p, nhwc, like=node) for p in parts]
    dims = [to.payload.values[i][1] for i in ids]
    while len(ids) > _MAX_CONCATENATED:  # the first five become one
        joined = list(dims[0])
        joined[at] = sum(d[at] for d in dims[:_MAX_CONCATENATED])
        datatype, *_, scheme = to.payload.values[ids[0]]
        value = to.payload.value(datatype, joined, quantisation=scheme)
        _concatenate_few(to, node, at, ids[:_MAX_CONCATENATED], value)
        ids = [value, *ids[_MAX_CONCATENATED:]]
        dims = [joined, *dims[_MAX_CONCATENATED:]]
    _concatenate_few(to, node, at, ids, to.write(node, nhwc))


def _concatenate_few(to: Lowering, node: Node, axis: int, ids: list[int], out: int) -> None:
    a, b, c, d, e = [*ids, *[NO_ID] * (_MAX_CONCATENATED - len(ids))]
    to.emit(node, f"Concatenate{len(ids)}", axis, a, b, c, d, out, 0, e)


def _not_pad(node: Node) -> str | None:
    return None if all(n >= 0 for n in cast("list[int]", node.args[1])) else "negative padding"


@lowers(aten.constant_pad_nd.default, unless=_not_pad)
def _pad(to: Lowering, node: Node) -> None:
    rank, pads = tensor_of(node).dim(), cast("list[int]", node.args[1])
    pairs = [(0, 0)] * (rank - len(pads) // 2)
    pairs += [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    before, after = ([p[i] for p in pairs] for i in (0, 1))
    value = float(argument(node, "value") or 0)
    to.unary(node, "StaticConstantPad", before, after, value, nhwc=False)


# ---- products ----


def _not_linear(node: Node) -> str | None:
    x, w, bias = operands_of(node)
    if node.kwargs.get("alpha", 1) != 1 or node.kwargs.get("beta", 1) != 1:
        return "alpha or beta other than 1"
    for each in (w, bias):
        turned = each is not None and each.target is aten.permute_copy.default
        base = each.args[0] if turned else each
        if isinstance(base, Node) and not base.meta.get("is_constant"):
            return "weights that are not constant"
    if bias is not None and tensor_of(bias).dim() != 1:
        return "a bias that is not a vector"
    if tensor_of(x).dim() < 1 or tensor_of(w).dim() != 2:
        return "weights that are not a matrix"
    return None


@lowers(*LINEAR, unless=_not_linear)
def _linear(to: Lowering, node: Node) -> None:
    layer = match(node, to.constant)
    if isinstance(layer, DynamicLinear):
        lower_linear(to, node, layer)
        return
    x, w, bias = operands_of(node)
    call = to.static.get(node)
    if call is not None and call.weights is not None:
        ids = [to.read(x), weights_value(to, call.weights, call.weights.values, 0)]
        bias_data = to.constant(bias)
        ids.append(NO_ID if bias_data is None else bias_value(to, call.weights, x, bias_data))
        result, bounds = to.with_activation(node)
        to.emit(node, "FullyConnected", *ids, to.write(result), 0, bounds=bounds)
        return
    weights = cast("Tensor", to.constant(w))
    flags = 0
    if node.target is not aten.linear.default:
        # [in, out]: as [out, in] if that is how the bytes lie.
        if weights.t().is_contiguous():
            weights = weights.t()
        else:
            flags = _TRANSPOSED_WEIGHTS
    ids = [to.read(x), to.payload.constant(weights)]
    ids.append(NO_ID if bias is None else to.payload.constant(to.tensors[bias]))
    result, bounds = to.with_activation(node)
    to.emit(node, "FullyConnected", *ids, to.write(result), flags, bounds=bounds)


@lowers(aten.bmm.default)
def _bmm(to: Lowering, node: Node) -> None:
    a, b = (cast("Node", x) for x in node.args[:2])
    to.emit(node, "BatchMatrixMultiply", to.read(a), to.read(b), to.write(node))


# ---- images ----


def _pair(value: Any) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * 2 if len(values) == 1 else values


def _not_convolution(node: Node) -> str | None:
    w, bias = node.args[1:3]
    if tensor_of(node).dim() != 4:
        return "a convolution of another than two dims"
    for each in (w, bias):
        if isinstance(each, Node) and not each.meta.get("is_constant"):
            return "weights that are not constant"
    return None


def _folded_batch_norm(to: Lowering, node: Node, w: Tensor, bias: Tensor | None) -> Any:
    """(node with the result, filter, bias): with the batch norm behind, if there is one."""
    norm = to.only_user(node)
    if norm is None or norm.target is not aten._native_batch_norm_legit_no_training.default:
        return node, w, bias
    scale, shift, mean, variance = (
        to.tensors[n].float() if isinstance(n, Node) else None for n in norm.args[1:5]
    )
    assert mean is not None and variance is not None
    factor = torch.rsqrt(variance + cast("float", norm.args[6]))
    factor = factor if scale is None else factor * scale
    offset = (torch.zeros_like(mean) if bias is None else bias) - mean
    (result,) = norm.users
    to.skip(norm, result)
    axis = 1 if argument(node, "transposed") else 0
    extents = [1] * w.dim()
    extents[axis] = -1
    return result, w * factor.reshape(extents), offset * factor + (0 if shift is None else shift)


@lowers(aten.convolution.default, unless=_not_convolution)
def _convolution(to: Lowering, node: Node) -> None:
    x, w_node, bias_node = (cast("Node", a) for a in node.args[:3])
    stride, padding, dilation, adjustment = (
        _pair(argument(node, name)) for name in ("stride", "padding", "dilation", "output_padding")
    )
    transposed, groups = argument(node, "transposed"), argument(node, "groups")
    call = to.static.get(node)
    integers = call.weights if call is not None else None
    w = cast("Tensor", to.constant(w_node)).float() if integers is None else integers.values
    result, w, bias = _folded_batch_norm(
        to, node, w, to.tensors[bias_node].float() if bias_node is not None else None
    )
    depthwise = not transposed and w.shape[1] == 1
    if transposed:  # (ic, oc / g, h, w), to the form of the others group by group
        ic, oc, *size = w.shape
        w = (
            w.reshape(groups, ic // groups, oc, *size)
            .transpose(1, 2)
            .reshape(-1, ic // groups, *size)
        )
    channels = [w.shape[1], w.shape[0] // groups]
    laid_out = (w.transpose(0, 1) if depthwise else w).permute(0, 2, 3, 1)
    bias_id = NO_ID
    if integers is not None:
        filter_id = weights_value(to, integers, laid_out, 3 if depthwise else 0)
        if bias is not None:
            bias_id = bias_value(to, integers, x, bias)
    else:
        filter_id = to.payload.constant(laid_out)
        if bias is not None:
            bias_id = to.payload.constant(bias)
    x_id = to.read(x, nhwc=True)
    if result is not node:
        to_write, bounds = to.with_activation(result)
    else:
        to_write, bounds = to.with_activation(node)
    kind = "ConvTranspose2d" if transposed else "DepthwiseConv2d" if depthwise else "Conv2d"
    (h, v) = padding
    fields = [h, v, h, v, *w.shape[2:], *stride, *dilation, *channels, groups]
    fields += adjustment if transposed else [0, 0]
    fields += [x_id, filter_id, bias_id, to.write(to_write, nhwc=True)]
    to.emit(node, kind, *fields, bounds=bounds)


def _not_pooling(node: Node) -> str | None:
    if tensor_of(node.args[0]).dim() != 4:  # type: ignore[arg-type]
        return "pooling of another than a batch of images"
    if argument(node, "ceil_mode"):
        return "ceil mode"
    if node.target is aten.avg_pool2d.default:
        padded = any(_pair(argument(node, "padding")))
        if argument(node, "divisor_override") or (padded and argument(node, "count_include_pad")):
            return "an average that counts padding, or has a divisor of its own"
    elif node.target is aten.max_pool2d_with_indices.default and any(
        u.args[1] != 0 for u in node.users
    ):
        return "indices of the largest"
    return None


@lowers(
    aten.max_pool2d.default,
    aten.max_pool2d_with_indices.default,
    aten.avg_pool2d.default,
    unless=_not_pooling,
)
def _pool(to: Lowering, node: Node) -> None:
    average = node.target is aten.avg_pool2d.default
    size = _pair(argument(node, "kernel_size"))
    stride = _pair(argument(node, "stride") or size)
    h, v = _pair(argument(node, "padding"))
    dilation = [0, 0] if average else _pair(argument(node, "dilation"))
    result = node
    if node.target is aten.max_pool2d_with_indices.default:
        (result,) = node.users
        to.skip(result)
    x_id = to.read(cast("Node", node.args[0]), nhwc=True)
    fields = [h, v, h, v, *size, *stride, *dilation, x_id, to.write(result, nhwc=True), _KEEP_DIMS]
    to.emit(node, "AvgPooling2d" if average else "MaxPooling2d", *fields)


def _not_mean(node: Node) -> str | None:
    x = tensor_of(node.args[0])  # type: ignore[arg-type]
    dims = sorted(d % 4 for d in cast("list[int]", node.args[1]))
    if x.dim() != 4 or dims != [2, 3] or not argument(node, "keepdim"):
        return "only means over the pixels of images, dims kept"
    return None


@lowers(aten.mean.dim, unless=_not_mean)
def _mean(to: Lowering, node: Node) -> None:
    x_id = to.read(cast("Node", node.args[0]), nhwc=True)
    to.emit(node, "GlobalAvgPooling2d", x_id, to.write(node, nhwc=True), _KEEP_DIMS)


@lowers(
    aten.upsample_bilinear2d.vec,
    unless=lambda node: None if is_static(tensor_of(node).shape[2:]) else "symbolic extents",
)
def _upsample(to: Lowering, node: Node) -> None:
    flags = _ALIGN_CORNERS if argument(node, "align_corners") else 0
    x_id = to.read(cast("Node", node.args[0]), nhwc=True)
    size = shape_of(node)[2:]
    to.emit(node, "StaticResizeBilinear2D", *size, x_id, to.write(node, nhwc=True), flags)
