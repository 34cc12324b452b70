"""The table of delegated operators. A row is a `@lowers` above the function that lowers the calls,
in a family of `operators/`; importing that package fills the table, from which the partitioner and
its configs, the lowering and the quantizer take what they know of an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch.fx import Node

if TYPE_CHECKING:
    from executorch.backends.xnnpack.lowering import Lowering

Lower = Callable[["Lowering", Node], None]
Refusal = Callable[[Node], str | None]


# How calls are computed whose operands and result are quantized to 8 bits: products with integer
# weights and pairs of operands, both with bounds for the result; averages; and what moves integers,
# so that operands and result have one scale and zero point.
Integers = Literal["products", "pairs", "averages", "moves"]


@dataclass
class Rule:
    """A row; `lowers` says what its fields are."""

    target: Any
    lower: Lower
    kind: str
    config: str
    whole: Callable[[Node], bool] | None
    integers: Integers | None
    passes_on: tuple[Any, ...]
    refuse: Refusal
    refuse_integers: Refusal

    @property
    def name(self) -> str:
        """Such as "add.Tensor", without the namespace: what configs call their `target_name`."""
        return ".".join(self.target.__name__.split(".")[-2:])


RULES: dict[Any, Rule] = {}


def lowers(
    target: Any,
    *forms: Any,
    kind: str = "",
    config: str = "",
    whole: Callable[[Node], bool] | bool = False,
    integers: Integers | None = None,
    passes_on: tuple[Any, ...] = (),
    unless: Refusal = lambda node: None,
    unless_integers: Refusal | None = None,
) -> Callable[[Lower], Lower]:
    """Let the decorated function lower the calls of an edge operator.

    forms      other edge operators that are the same to users
    kind       of the payload's node (schema.fbs), where the function serves several rows
    config     the class in `partition/config` that users restrict a partitioner by
    whole      the ATen operator of the same name must not be decomposed; or which calls of it
    integers   how it is computed in 8 bits; None: in floating point only
    passes_on  ATen operators, as captured, whose results the quantizer lets keep the scale and zero
               point of their operand, since they have no value beyond its
    unless     why a call is not lowered; `unless_integers` in 8 bits, where that differs
    """

    def register(lower: Lower) -> Lower:
        kept = (lambda node: True) if whole is True else whole or None
        rule = Rule(
            target,
            lower,
            kind,
            config,
            kept,
            integers,
            passes_on,
            unless,
            unless_integers or unless,
        )
        RULES.update(dict.fromkeys((target, *forms), rule))
        return lower

    return register


def kind_of(node: Node) -> str:
    """Empty where no row says it."""
    rule = RULES.get(node.target)
    return "" if rule is None else rule.kind


def integers_of(node: Node) -> Integers | None:
    rule = RULES.get(node.target)
    return None if rule is None else rule.integers
