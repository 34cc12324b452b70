"""Calls in 8 bits: each operand is dequantized before them, and their result is quantized after, by
parameters that were found ahead of time. Those of pt2e: one scale for activations, for weights one
or one per output channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.fx import Node

from executorch.backends.xnnpack.linear import Rows, rows_around
from executorch.backends.xnnpack.rules import rule_of
from executorch.backends.xnnpack.serialization.payload import MAX_TERMS, TOO_MANY_TERMS
from executorch.exir.dialects._ops import ops as exir_ops

if TYPE_CHECKING:
    from executorch.backends.xnnpack.lowering import Lowering

aten = exir_ops.edge.aten
# Types of values and kinds of quantization in the payload.
_INT8, _INT32, _INT8_CHANNELS, _INT32_CHANNELS = 3, 5, 6, 7
_PER_CHANNEL, _PER_TENSOR = 1, 2

_PREFIX = "quantized_decomposed."

Scheme = tuple[float, int]  # scale, zero point
Constants = Callable[[Any], Tensor | None]


@dataclass
class Weights:
    values: Tensor  # int8
    scales: Tensor  # float32, [1] or [channels]
    axis: int | None  # of the channels


@dataclass
class StaticCall:
    """A statically quantized call, which the payload computes on integers."""

    node: Node
    aliases: dict[Node, Node]  # floating-point operands and results -> integers they stand for
    behind: list[Node]  # computed together with it; the last quantizes the result
    weights: Weights | None
    weights_from: list[Node]  # the calls that give the weights
    padding: Node | None = None  # the call in front that pads a convolution's image with zeros
    rows: Rows | None = None  # the views around a product

    def conversions(self) -> list[Node]:
        operands = [n for n in self.aliases if is_dequantize(n)]
        return [*operands, self.behind[-1]]

    def chain(self) -> list[Node]:
        """The nodes that must be in one delegate with the call."""
        parts = [self.node, *self.conversions(), *self.behind, *self.weights_from]
        parts += [] if self.padding is None else [self.padding]
        return parts + ([] if self.rows is None else [self.rows.join])


def _name(node: Any) -> str:
    return str(getattr(node.target, "_op", "")) if isinstance(node, Node) else ""


def is_quantize(node: Any) -> bool:
    return _name(node) == _PREFIX + "quantize_per_tensor.default"


def is_dequantize(node: Any) -> bool:
    return _name(node) == _PREFIX + "dequantize_per_tensor.default"


def scheme_of(node: Node) -> Scheme | None:
    """Scale and zero point of a quantization or dequantization, or of an input whose readers all
    dequantize it. None for other types than int8, and other nodes."""
    if node.op == "placeholder":
        found = {scheme_of(user) if is_dequantize(user) else None for user in node.users}
        return found.pop() if len(found) == 1 else None
    if not is_quantize(node) and not is_dequantize(node):
        return None
    _, scale, zero, low, high, dtype = node.args[:6]
    if dtype != torch.int8 or not -128 <= cast("int", low) <= cast("int", high) <= 127:
        return None
    return cast("float", scale), cast("int", zero)


def bounds_of(quantize: Node) -> tuple[float, float] | None:
    """The bounds of the numbers that a quantization to a part of the int8 range can represent; None
    for the whole range, to which the payload clamps by itself."""
    _, scale, zero, low, high = cast("tuple[Any, float, int, int, int]", quantize.args[:5])
    return None if (low, high) == (-128, 127) else ((low - zero) * scale, (high - zero) * scale)


def conversion_refusal(node: Node, of_integers: bool = False) -> str | None:
    """Why a quantization or dequantization is not delegated. `of_integers`: a statically quantized
    call that reads it is delegated with it."""
    source = cast("Node", node.args[0])
    if source.meta.get("is_constant") and not (of_integers and is_dequantize(node)):
        return "the layer of these integer weights is not computed in integers"
    floating = source if is_quantize(node) else node
    if floating.meta["val"].dtype != torch.float32:
        return "quantization of another type than float32"
    if scheme_of(node) is None:
        return "quantization to another type than int8"
    known = scheme_of(source) if is_dequantize(node) else scheme_of(node)
    readers = node.users if is_quantize(node) else source.users
    if known != scheme_of(node) or any(is_dequantize(u) and scheme_of(u) != known for u in readers):
        return "quantization whose readers dequantize with other parameters"
    return None


def _only_user(node: Node) -> Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].op == "call_function" else None


def match_static(node: Node, constant: Constants) -> StaticCall | str | None:
    """The statically quantized call at `node`. A str says why a call with integer weights is not
    one; None stands for all other calls."""
    rule = rule_of(node)
    how = rule.integers
    if how is None:
        return None
    if rule.unless_integers and rule.unless_integers(node) and not rule.unless(node):
        return None  # computed in floats, between conversions
    weighted = how == "product"
    rows = rows_around(node)
    if weighted:
        at = 1 if node.target is aten.addmm.default else 0
        operands, w = [cast("Node", node.args[at])], cast("Node", node.args[at + 1])
        padding = operands[0] if _pads_image(operands[0], node) else None
        if padding is not None:
            operands = [cast("Node", padding.args[0])]
        if rows is not None:
            operands = [rows.source]
        if _dequantized_weights(w) is None:
            return None
    else:
        operands = node.all_input_nodes
        if how == "pair" and not isinstance(node.args[1], Node):
            return None
    if not all(is_dequantize(x) and scheme_of(x) for x in operands):
        return "integer weights with floating-point activations" if weighted else None
    found = _quantized_result(node, rows)
    if found is None:
        return "integer weights with a floating-point result" if weighted else None
    result = found[-1]
    if how == "moves" and {scheme_of(x) for x in operands} != {scheme_of(result)}:
        return None
    aliases = {x: cast("Node", x.args[0]) for x in operands}
    aliases.update(dict.fromkeys([node, *found[:-1]], result))
    if not weighted:
        return StaticCall(node, aliases, found, None, [])
    weights = _match_weights(node, w, constant)
    if isinstance(weights, str):
        return weights
    return StaticCall(node, aliases, found, weights, list(_calls_behind(w)), padding, rows)


def _pads_image(x: Node, reader: Node) -> bool:
    """Whether `x` only pads the input of a convolution with zeros, as torch.export writes
    padding="same" for an even window: the convolution then pads by itself."""
    if (
        x.target is not aten.constant_pad_nd.default
        or reader.target is not aten.convolution.default
    ):
        return False
    widths, value = cast("list[Any]", x.args[1]), x.args[2] if len(x.args) > 2 else 0
    dim = cast("Tensor", x.meta["val"]).dim()
    image = dim in (3, 4) and len(widths) <= 2 * (dim - 2) and not reader.args[6]
    plain = all(isinstance(n, int) and n >= 0 for n in widths)
    return image and plain and value == 0 and list(x.users) == [reader]


def _quantized_result(node: Node, rows: Rows | None) -> list[Node] | None:
    """The calls after `node` that are computed together with it, up to the quantization of the
    result; None if the result is not quantized."""
    ends = [] if rows is None else [rows.split]
    user = _only_user(rows.split if rows is not None else node)
    if node.target is aten.max_pool2d_with_indices.default:
        if user is None or user.args[1] != 0:
            return None
        ends.append(user)
        user = _only_user(user)
    takes_bounds = rule_of(node).integers in ("product", "pair")
    if user is not None and rule_of(user).kind == "Clamp" and takes_bounds:
        ends.append(user)
        user = _only_user(user)
    if user is None or not is_quantize(user) or scheme_of(user) is None:
        return None
    if bounds_of(user) and not takes_bounds:
        return None
    return [*ends, user]


def _dequantized_weights(w: Any) -> Node | None:
    if isinstance(w, Node) and w.target is aten.permute_copy.default:
        w = w.args[0]
    per_channel = _name(w) == _PREFIX + "dequantize_per_channel.default"
    return w if per_channel or is_dequantize(w) else None


def _calls_behind(node: Any) -> Iterator[Node]:
    while isinstance(node, Node) and node.op == "call_function":
        yield node
        node = node.args[0]


def _match_weights(node: Node, w: Node, constant: Constants) -> Weights | str:
    dequantize = cast("Node", _dequantized_weights(w))
    values = constant(dequantize.args[0])
    if values is None or values.dtype != torch.int8:
        return "weights that are not constants of 8 bits"
    axis = None
    if is_dequantize(dequantize):
        scales, zeros = (torch.tensor([x]) for x in dequantize.args[1:3])
    else:
        scales, zeros = (cast("Tensor", constant(x)) for x in dequantize.args[1:3])
        axis = cast("int", dequantize.args[3])
    if bool(zeros.any()):
        return "weights with zero points"
    transposed = node.target is aten.convolution.default and node.args[6]
    if axis is not None and axis != (1 if transposed else 0):
        return "scales of something else than output channels"
    if axis is not None and transposed and node.args[8] != 1:
        return "a transposed convolution in groups whose channels have scales of their own"
    # Transposed filters are [in, out / groups, height, width].
    terms = prod(values.shape[1:])
    if transposed:
        terms = values.shape[0] // cast("int", node.args[8]) * prod(values.shape[2:])
    if terms > MAX_TERMS:
        return TOO_MANY_TERMS
    return Weights(values, scales.float(), axis)


def weights_value(to: Lowering, weights: Weights, values: Tensor, axis: int) -> int:
    """The id of integer weights, laid out as `values`, whose channels lie along `axis`."""
    payload = to.payload
    data = payload.data(values)
    if weights.axis is None:
        kind = (_PER_TENSOR, [float(weights.scales), 0])
        return payload.value(_INT8, values.shape, constant=data, quantization=kind)
    scales = payload.data(weights.scales, "scale_")
    channels = (_PER_CHANNEL, [None, axis, scales, weights.scales.numel()])
    return payload.value(_INT8_CHANNELS, values.shape, constant=data, quantization=channels)


def bias_value(to: Lowering, weights: Weights, x: Node, bias: Tensor) -> int:
    """The id of the bias in units of the product: scale of `x` (dequantized) times the weights'."""
    scheme = scheme_of(x)
    assert scheme is not None
    scales = weights.scales * scheme[0]
    largest = 2**31 - 1
    units = (bias.double() / scales.double()).round().clamp(-largest, largest).to(torch.int32)
    payload = to.payload
    data = payload.data(units)
    if weights.axis is None:
        kind = (_PER_TENSOR, [float(scales), 0])
        return payload.value(_INT32, units.shape, constant=data, quantization=kind)
    channels = (_PER_CHANNEL, [None, 0, payload.data(scales, "scale_"), scales.numel()])
    return payload.value(_INT32_CHANNELS, units.shape, constant=data, quantization=channels)


def activation_kind(node: Node) -> tuple[int, tuple[int, list[float | int]]]:
    """Type and quantization of the value of an int8 node."""
    scheme = scheme_of(node)
    if scheme is None:
        raise RuntimeError(f"XnnpackBackend: {node} is of integers without a scale")
    return _INT8, (_PER_TENSOR, [*scheme])
