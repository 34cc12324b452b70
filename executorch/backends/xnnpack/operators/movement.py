"""Calls that only move elements."""

from __future__ import annotations

import operator
from typing import cast

from torch.fx import Node

from executorch.backends.xnnpack.lowering import (
    Lowering,
    argument,
    aten,
    channels_last,
    channels_last_dim,
    extents_of,
    is_channels_last,
    is_static,
    shape_of,
    tensor_of,
)
from executorch.backends.xnnpack.rules import lowers
from executorch.backends.xnnpack.serialization.payload import NO_ID
from executorch.exir.dialects._ops import ops as exir_ops

_MAX_CONCATENATED = 5


def _turns_image(node: Node) -> str | None:
    x = cast("Node", node.args[0])
    if is_channels_last(tensor_of(x)) != is_channels_last(tensor_of(node)):
        return "a copy into another dim order"
    return None


@lowers(
    aten.clone.default,
    config="CloneConfig",
    passes_on=("clone", "contiguous", "dropout"),
    unless=_turns_image,
)
@lowers(
    exir_ops.edge.dim_order_ops._clone_dim_order.default,
    config="CloneDimOrderConfig",
    unless=_turns_image,
)
def _clone(to: Lowering, node: Node) -> None:
    to.unary(node, "Copy")


@lowers(
    aten.permute_copy.default,
    config="PermuteConfig",
    integers="moves",
    passes_on=("permute", "permute_copy", "t", "transpose"),
)
def _permute(to: Lowering, node: Node) -> None:
    rank = tensor_of(node).dim()
    perm = [d % rank for d in cast("list[int]", node.args[1])]
    to.unary(node, "StaticTranspose", rank, perm, nhwc=False)


def _not_reshape(node: Node) -> str | None:
    shape = tensor_of(node).shape
    if any(isinstance(extent, int) and extent == 0 for extent in shape):
        return "no elements"
    if sum(not isinstance(extent, int) for extent in shape) > 1:
        return "a shape with more than one symbolic extent"
    return None


@lowers(
    aten.view_copy.default,
    config="ViewCopyConfig",
    integers="moves",
    passes_on=("flatten", "reshape", "view", "view_copy"),
    unless=_not_reshape,
)
@lowers(
    aten.unsqueeze_copy.default,
    config="UnsqueezeCopyConfig",
    integers="moves",
    passes_on=("unsqueeze",),
    unless=_not_reshape,
)
@lowers(
    aten.squeeze_copy.dims,
    integers="moves",
    passes_on=("squeeze", "squeeze_copy"),
    unless=_not_reshape,
)
def _reshape(to: Lowering, node: Node) -> None:
    shape = extents_of(node)
    to.unary(node, "StaticReshape", len(shape), shape, nhwc=False)


def _not_slice(node: Node) -> str | None:
    x, y = tensor_of(node.args[0]), tensor_of(node)  # type: ignore[arg-type]
    if argument(node, "step") != 1:
        return "a step other than 1"
    if any(isinstance(extent, int) and extent == 0 for extent in y.shape):
        return "no elements"
    dim = argument(node, "dim") % x.dim()
    start, end = argument(node, "start") or 0, argument(node, "end")
    if not is_static((start, 0 if end is None else end)):
        return "a slice whose start or end is known at run time only"
    if not is_static((x.shape[dim],)) and (start < 0 or not is_static((y.shape[dim],))):
        return "a slice that is counted from, or reaches, the end of a symbolic extent"
    return None


@lowers(
    aten.slice_copy.Tensor,
    config="SliceCopyConfig",
    integers="moves",
    passes_on=("slice", "slice_copy"),
    unless=_not_slice,
)
def _slice(to: Lowering, node: Node) -> None:
    x = cast("Node", node.args[0])
    rank = tensor_of(x).dim()
    dim, start = argument(node, "dim") % rank, argument(node, "start") or 0
    extent = shape_of(x)[dim]
    first = min(max(start + extent if start < 0 else start, 0), extent)
    _part(to, node, x, node, dim, first, extents_of(node)[dim])


def _part(to: Lowering, node: Node, x: Node, result: Node, dim: int, first: int, size: int) -> None:
    """Lower a slice along `dim`. It takes the other dims completely: a size of 0 means that for
    symbolic extents."""
    offsets, sizes = [0] * tensor_of(x).dim(), extents_of(x)
    offsets[dim], sizes[dim] = first, size
    nhwc = to.is_nhwc(x)
    if nhwc:
        offsets, sizes = channels_last(offsets), channels_last(sizes)
    ids = (to.read(x, nhwc), to.write(result, nhwc))
    to.emit(node, "StaticSlice", len(sizes), offsets, sizes, *ids)


def _not_split(node: Node) -> str | None:
    sizes = cast("list[int]", node.args[1])
    if not is_static(sizes) or 0 in sizes:
        return "parts of symbolic extents, or without elements"
    return None


@lowers(aten.split_with_sizes_copy.default, unless=_not_split)
def _split(to: Lowering, node: Node) -> None:
    x, sizes = cast("tuple[Node, list[int]]", node.args[:2])
    dim = (argument(node, "dim") or 0) % tensor_of(x).dim()
    for item in node.users:
        assert item.target is operator.getitem
        i = cast("int", item.args[1])
        _part(to, node, x, item, dim, sum(sizes[:i]), sizes[i])


def _not_select(node: Node) -> str | None:
    x = tensor_of(node.args[0])  # type: ignore[arg-type]
    dim, index = argument(node, "dim") % x.dim(), argument(node, "index")
    if not is_static((index,)) or (index < 0 and not is_static((x.shape[dim],))):
        return "an index that is known at run time only"
    return _not_reshape(node)


@lowers(aten.select_copy.int, passes_on=("select",), unless=_not_select)
def _select(to: Lowering, node: Node) -> None:
    x = cast("Node", node.args[0])
    dims, sizes = shape_of(x), extents_of(x)
    dim, index = argument(node, "dim") % len(dims), argument(node, "index")
    offsets = [0] * len(dims)
    offsets[dim] = index + dims[dim] if index < 0 else index
    dims[dim] = sizes[dim] = 1
    source = to.read(x)
    part = to.like(source, dims)
    to.emit(node, "StaticSlice", len(dims), offsets, sizes, source, part)
    shape = extents_of(node)
    to.emit(node, "StaticReshape", len(shape), shape, part, to.write(node))


def _not_concatenation(node: Node) -> str | None:
    parts = cast("list[Node]", node.args[0])
    if any(tensor_of(p).dim() != tensor_of(node).dim() for p in parts):
        return "an empty tensor of another rank"
    return None if len(parts) > 1 else "a single tensor"


@lowers(aten.cat.default, config="CatConfig", integers="moves", unless=_not_concatenation)
def _concatenate(to: Lowering, node: Node) -> None:
    parts = cast("list[Node]", node.args[0])
    rank = tensor_of(node).dim()
    axis = (argument(node, "dim") or 0) % rank
    nhwc = all(to.is_nhwc(p) for p in parts)
    at = channels_last_dim(rank, axis) if nhwc else axis
    ids = [to.read(p, nhwc, like=node) for p in parts]
    dims = [to.payload.values[i][1] for i in ids]
    while len(ids) > _MAX_CONCATENATED:  # the first five become one
        joined = list(dims[0])
        joined[at] = sum(d[at] for d in dims[:_MAX_CONCATENATED])
        value = to.like(ids[0], joined)
        _concatenate_few(to, node, at, ids[:_MAX_CONCATENATED], value)
        ids = [value, *ids[_MAX_CONCATENATED:]]
        dims = [joined, *dims[_MAX_CONCATENATED:]]
    _concatenate_few(to, node, at, ids, to.write(node, nhwc))


def _concatenate_few(to: Lowering, node: Node, axis: int, ids: list[int], out: int) -> None:
    a, b, c, d, e = [*ids, *[NO_ID] * (_MAX_CONCATENATED - len(ids))]
    to.emit(node, f"Concatenate{len(ids)}", axis, a, b, c, d, out, 0, e)


def _not_pad(node: Node) -> str | None:
    return None if all(n >= 0 for n in cast("list[int]", node.args[1])) else "negative padding"


@lowers(
    aten.constant_pad_nd.default,
    config="ConstantPadConfig",
    integers="moves",
    passes_on=("constant_pad_nd", "pad"),
    unless=_not_pad,
)
def _pad(to: Lowering, node: Node) -> None:
    rank, pads = tensor_of(node).dim(), cast("list[int]", node.args[1])
    nhwc = to.is_nhwc(node.args[0])
    pairs = [(0, 0)] * (rank - len(pads) // 2)
    pairs += [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    before, after = ([p[i] for p in pairs] for i in (0, 1))
    if nhwc:
        before, after = channels_last(before), channels_last(after)
    value = float(argument(node, "value") or 0)
    to.unary(node, "StaticConstantPad", before, after, value, nhwc=nhwc)
