"""Calls that compute each element, or each row, by itself."""

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
    lowers,
    shape_of,
    tensor_of,
)

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


def _not_elu(node: Node) -> str | None:
    scales = (argument(node, "scale"), argument(node, "input_scale"))
    return None if scales == (1, 1) else "an ELU with scales"


@lowers(aten.elu.default, unless=_not_elu)
def _elu(to: Lowering, node: Node) -> None:
    to.unary(node, "ELU", float(argument(node, "alpha")))


def _not_prelu(node: Node) -> str | None:
    x, slope = (cast("Node", n) for n in node.args[:2])
    if not slope.meta.get("is_constant"):
        return "slopes that are not constant"
    if tensor_of(x).dim() not in (2, 3, 4):
        return "a PReLU whose channels are not those of rows, signals or images"
    channels = tensor_of(x).shape[1]
    return None if isinstance(channels, int) else "a symbolic number of channels"


@lowers(aten.prelu.default, unless=_not_prelu)
def _prelu(to: Lowering, node: Node) -> None:
    """Slopes lie along the last dim of the payload's value, where it has the channels."""
    x, slope = (cast("Node", n) for n in node.args[:2])
    rank, channels = tensor_of(x).dim(), cast("int", tensor_of(x).shape[1])
    nhwc = rank > 2
    slopes = cast("Tensor", to.constant(slope)).reshape(-1).expand(channels)
    ids = (to.read(x, nhwc), to.payload.constant(slopes.reshape([1] * (rank - 1) + [channels])))
    to.emit(node, "PReLU", *ids, to.write(node, nhwc))


@lowers(
    aten.pow.Tensor_Scalar,
    unless=lambda node: (
        None if node.args[1] in (2, 3) else "only squares and cubes, no other powers"
    ),
)
def _power(to: Lowering, node: Node) -> None:
    x, exponent = cast("tuple[Node, int]", node.args[:2])
    if exponent == 2:
        to.unary(node, "Square")
        return
    nhwc = to.is_nhwc(x)
    source = to.read(x, nhwc)
    square = to.like(source, to.payload.values[source][1])
    to.emit(node, "Square", source, square)
    to.emit(node, "Multiply", square, source, to.write(node, nhwc))


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
        shape, given = shape_of(node), [n for n in (a, b) if n not in to.tensors]
        single = all(to.tensors[n].numel() == 1 for n in (a, b) if n in to.tensors)
        same = single and all(shape_of(n) == shape for n in given)
        nhwc = same and any(to.is_nhwc(n) for n in given)
        ids = [to.read(x, nhwc, like=node) for x in (a, b)]
    else:
        nhwc = to.is_nhwc(a)
        number = torch.tensor([float(b)], dtype=tensor_of(node).dtype)
        ids = [to.read(a, nhwc), to.payload.constant(number)]
    takes_bounds = node.target not in (aten.minimum.default, aten.maximum.default)
    result, bounds = to.with_activation(node) if takes_bounds else (node, None)
    to.emit(node, _BINARY[node.target], *ids, to.write(result, nhwc), bounds=bounds)
