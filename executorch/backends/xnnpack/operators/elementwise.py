"""Calls that compute each element, or each row, by itself."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack.lowering import (
    Lowering,
    argument,
    aten,
    clamp_bounds,
    shape_of,
    tensor_of,
)
from executorch.backends.xnnpack.rules import lowers, rule_of
from executorch.exir.backend.tags import is_constant_data


@lowers(aten.abs.default, kind="Abs", config="AbsConfig")
@lowers(aten.ceil.default, kind="Ceiling", config="CeilConfig")
@lowers(aten.cos.default, kind="Cos", config="CosConfig")
@lowers(aten.exp.default, kind="Exp", config="ExpConfig")
@lowers(aten.floor.default, kind="Floor", config="FloorConfig")
@lowers(aten.hardswish.default, kind="Hardswish", config="HardswishConfig", whole=True)
@lowers(aten.log.default, kind="Log", config="LogConfig")
@lowers(aten.neg.default, kind="Negate", config="NegConfig")
@lowers(aten.rsqrt.default, kind="ReciprocalSquareRoot", config="ReciprocalSquareRootConfig")
@lowers(aten.sigmoid.default, kind="Sigmoid", config="SigmoidConfig")
@lowers(aten.sin.default, kind="Sin", config="SinConfig")
@lowers(aten.sqrt.default, kind="SquareRoot", config="SquareRootConfig")
@lowers(aten.tanh.default, kind="Tanh", config="TanhConfig")
def _unary(to: Lowering, node: Node) -> None:
    to.unary(node, rule_of(node).kind)


def _not_gelu(node: Node) -> str | None:
    if argument(node, "approximate") != "none":
        return "the payload's gelu is the exact one, not its tanh approximation"
    return "gelu exists in float32 only" if tensor_of(node).dtype != torch.float32 else None


@lowers(aten.gelu.default, config="GeluConfig", unless=_not_gelu)
def _gelu(to: Lowering, node: Node) -> None:
    to.unary(node, "Gelu")


def _not_clamp(node: Node) -> str | None:
    low, high = clamp_bounds(node)
    return None if low <= high else f"bounds {low:g} and {high:g}, the lower one first expected"


@lowers(
    aten.relu.default,
    kind="Clamp",
    config="ReLUConfig",
    integers="moves",
    passes_on=("relu", "relu_"),
)
@lowers(
    aten.hardtanh.default,
    kind="Clamp",
    config="HardtanhConfig",
    integers="moves",
    passes_on=("hardtanh", "hardtanh_", "relu6"),
    unless=_not_clamp,
)
@lowers(aten.clamp.default, kind="Clamp", config="ClampConfig", integers="moves", unless=_not_clamp)
def _clamp(to: Lowering, node: Node) -> None:
    to.unary(node, "Clamp", bounds=clamp_bounds(node))


@lowers(aten.leaky_relu.default, config="LeakyReLUConfig")
def _leaky_relu(to: Lowering, node: Node) -> None:
    to.unary(node, "LeakyReLU", float(argument(node, "negative_slope")))


def _not_elu(node: Node) -> str | None:
    scales = (argument(node, "scale"), argument(node, "input_scale"))
    return None if scales == (1, 1) else "an ELU with scale or input_scale other than 1"


@lowers(aten.elu.default, unless=_not_elu)
def _elu(to: Lowering, node: Node) -> None:
    to.unary(node, "ELU", float(argument(node, "alpha")))


def _not_prelu(node: Node) -> str | None:
    if not cast("Node", node.args[1]).meta.get("is_constant"):
        return "slopes that are not constant"
    return _no_channels(node)


def _no_channels(node: Node) -> str | None:
    if tensor_of(node).dim() not in (2, 3, 4):
        return "a PReLU of another rank than 2, 3 or 4"
    channels = tensor_of(node).shape[1]
    return None if isinstance(channels, int) else "a symbolic number of channels"


def _prelu_stays_whole(node: Node, program: ExportedProgram) -> bool:
    slope = cast("Node", node.args[1])
    return is_constant_data(program, slope) and _no_channels(node) is None


@lowers(
    aten.prelu.default,
    whole=_prelu_stays_whole,
    unless=_not_prelu,
)
def _prelu(to: Lowering, node: Node) -> None:
    """Lower a PReLU. The slopes become the last dim of a constant, since values of rank 3 and 4
    have their channels last in the payload."""
    x, slope = (cast("Node", n) for n in node.args[:2])
    rank, channels = tensor_of(x).dim(), cast("int", tensor_of(x).shape[1])
    nhwc = rank > 2
    slopes = cast("Tensor", to.constant(slope)).reshape(-1).expand(channels)
    ids = (to.read(x, nhwc), to.payload.constant(slopes.reshape([1] * (rank - 1) + [channels])))
    to.emit(node, "PReLU", *ids, to.write(node, nhwc))


# Powers that are a node of their own. Torch takes roots for these exponents, too.
_POWERS = {2: "Square", 0.5: "SquareRoot", -0.5: "ReciprocalSquareRoot"}


@lowers(
    aten.pow.Tensor_Scalar,
    config="PowConfig",
    unless=lambda node: (
        None if node.args[1] in (*_POWERS, 3) else "only squares, cubes and square roots"
    ),
)
def _power(to: Lowering, node: Node) -> None:
    x, exponent = cast("tuple[Node, float]", node.args[:2])
    if exponent in _POWERS:
        to.unary(node, _POWERS[exponent])
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


@lowers(aten._softmax.default, config="SoftmaxConfig", unless=_not_softmax)
def _softmax(to: Lowering, node: Node) -> None:
    to.unary(node, "Softmax", nhwc=False)


def _not_sum(node: Node) -> str | None:
    alpha = argument(node, "alpha", 1)
    return None if alpha == 1 else "alpha other than 1"


def _is_of_images(to: Lowering, node: Node, *operands: Node) -> bool:
    """Whether to compute in NHWC order: an operand with the shape of the result lies so, and the
    others have its rank. Constants must have one element, or one for each channel: beside larger
    ones the runtime would not keep float images as planes."""
    spread = []
    for each in operands:
        constant = to.stored(each)
        if constant is not None and constant.numel() == 1:
            continue
        if tensor_of(each).dim() != tensor_of(node).dim():
            return False
        if constant is not None and constant.numel() != constant.shape[1:2].numel():
            return False
        spread.append(each)
    whole = [n for n in spread if shape_of(n) == shape_of(node)] or spread
    return any(to.is_nhwc(n) for n in whole)


@lowers(
    aten.add.Tensor,
    (aten.add.Scalar,),
    kind="Add",
    config="AddConfig",
    integers="pair",
    unless=_not_sum,
)
@lowers(
    aten.sub.Tensor,
    (aten.sub.Scalar,),
    kind="Subtract",
    config="SubConfig",
    integers="pair",
    unless=_not_sum,
)
@lowers(aten.mul.Tensor, (aten.mul.Scalar,), kind="Multiply", config="MulConfig", integers="pair")
@lowers(aten.div.Tensor, (aten.div.Scalar,), kind="Div", config="DivConfig")
@lowers(aten.maximum.default, kind="Maximum", config="MaximumConfig")
@lowers(aten.minimum.default, kind="Minimum", config="MinimumConfig")
def _binary(to: Lowering, node: Node) -> None:
    a, b = cast("tuple[Node, Any]", node.args[:2])
    if isinstance(b, Node):
        nhwc = _is_of_images(to, node, a, b)
        ids = [to.read(x, nhwc, like=node) for x in (a, b)]
    else:
        nhwc = to.is_nhwc(a)
        number = torch.tensor([float(b)], dtype=tensor_of(node).dtype)
        ids = [to.read(a, nhwc), to.payload.constant(number)]
    takes_bounds = node.target not in (aten.minimum.default, aten.maximum.default)
    result, bounds = to.with_activation(node) if takes_bounds else (node, None)
    to.emit(node, rule_of(node).kind, *ids, to.write(result, nhwc), bounds=bounds)


@lowers(aten.reciprocal.default)
def _reciprocal(to: Lowering, node: Node) -> None:
    x = cast("Node", node.args[0])
    nhwc = to.is_nhwc(x)
    one = to.payload.constant(torch.ones(1, dtype=tensor_of(node).dtype))
    to.emit(node, "Div", one, to.read(x, nhwc), to.write(node, nhwc))
