"""Which quantized calls of a program can be delegated, and why others cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack.lowering import ConstantValues, aten, constants_of
from executorch.backends.xnnpack.quantized import Constants, DynamicLayer, match
from executorch.backends.xnnpack.rules import rule_of
from executorch.backends.xnnpack.static_quantization import (
    StaticCall,
    conversion_refusal,
    match_static,
)

Reasons = dict[Node, str]


def constants_in(program: ExportedProgram) -> Constants:
    data = constants_of(program)
    return ConstantValues(lambda n: data.get(n.name) if n.meta.get("is_constant") else None)


def dynamic_layers(program: ExportedProgram) -> tuple[dict[Node, DynamicLayer], Reasons]:
    """The dynamically quantized layers of a program, and reasons for those that cannot be
    delegated."""
    constant = constants_in(program)
    found = {node: match(node, constant) for node in program.graph.nodes}
    layers = {n: x for n, x in found.items() if isinstance(x, DynamicLayer)}
    reasons = {n: x for n, x in found.items() if isinstance(x, str)}
    torn = _drop_torn(layers, lambda node, layer: (node, *layer.parts()), lambda x: x.chain)
    reasons |= dict.fromkeys(torn, "its quantized operands are read by other calls too")
    return layers, reasons


def static_calls(
    program: ExportedProgram, refusal: Callable[[Node, Callable[[Node], str | None]], str | None]
) -> tuple[dict[Node, StaticCall], Reasons]:
    """The statically quantized calls of a program, and reasons for those that cannot be delegated;
    `refusal(node, unless)` gives the partitioner's reasons."""
    constant = constants_in(program)
    calls: dict[Node, StaticCall] = {}
    reasons: Reasons = {}
    for node in program.graph.nodes:
        call = match_static(node, constant)
        if isinstance(call, StaticCall):
            for each in call.weights_from:
                each.meta["is_constant"] = True
            conversions = (conversion_refusal(n, of_integers=True) for n in call.conversions())
            rule = rule_of(node)
            reason = refusal(node, rule.unless_integers or rule.unless)
            call = reason or next(filter(None, conversions), None) or call
        if isinstance(call, str):
            reasons[node] = call
        elif call is not None:
            calls[node] = call
    torn = _drop_torn(calls, lambda _, call: call.chain(), lambda call: call.weights_from)
    reasons |= dict.fromkeys(torn, "its integer weights are read by other calls too")
    return calls, reasons


def float_weights(program: ExportedProgram) -> dict[Node, Node]:
    """Layer -> the call that dequantizes its constant weights, if nothing else reads that. Used for
    partitioners of floating-point calls: the dequantized weights count as constants."""
    constant = constants_in(program)
    found: dict[Node, Node] = {}
    for node in program.graph.nodes:
        if node.target not in (aten.linear.default, aten.convolution.default):
            continue
        w = node.args[1]
        if "dequantize" not in str(w.target) or list(w.users) != [node] or constant(w) is None:
            continue
        w.meta["is_constant"] = True
        found[node] = w
    return found


def _drop_torn(
    calls: dict[Node, object],
    parts: Callable[[Node, object], Iterable[Node]],
    own: Callable[[object], Iterable[Node]],
) -> list[Node]:
    """Remove the calls of which an `own` node is also read outside of all remaining calls' `parts`.
    Returns the removed ones."""
    removed: list[Node] = []
    while True:
        known = {n for node, call in calls.items() for n in parts(node, call)}
        torn = [
            node
            for node, call in calls.items()
            if any(user not in known for n in own(call) for user in n.users)
        ]
        if not torn:
            return removed
        for node in torn:
            del calls[node]
        removed += torn
