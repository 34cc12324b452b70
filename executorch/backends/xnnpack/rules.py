"""The table of delegated operators. A row is a `@lowers` above the function that lowers the calls,
in a family of `operators/`; importing that package fills the table. From it the lowering, the
partitioner with its configs and the quantizer take what they know of an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from torch.export import ExportedProgram
from torch.fx import Node

if TYPE_CHECKING:
    from executorch.backends.xnnpack.lowering import Lowering

Lower = Callable[["Lowering", Node], None]
Refusal = Callable[[Node], str | None]


@dataclass
class Rule:
    """A row of the table: an operator, and how calls of it are lowered.

    target     the edge operator
    forms      other edge operators that the row is for, such as add.Scalar beside add.Tensor
    kind       of the payload's node (schema.fbs), where the function serves several rows
    config     the class in `partition/config` that users restrict a partitioner by
    whole      the ATen operator of the same name must not be decomposed; or which calls of it
    integers   how it is computed where operands and result are quantized to 8 bits: a product with
               integer weights or a pair of operands, both with bounds for the result; an average;
               or it moves integers, so that all have one scale and zero point
    passes_on  ATen operators, as captured, whose results the quantizer lets keep the scale and zero
               point of their operand, since their values are within its range
    unless     returns why a call is not lowered, or None; `unless_integers` is asked instead where
               operands and result are quantized to 8 bits
    """

    target: Any
    forms: tuple[Any, ...] = ()
    kind: str = ""
    config: str = ""
    whole: Callable[[Node, ExportedProgram], bool] | bool = False
    integers: Literal["product", "pair", "average", "moves"] | None = None
    passes_on: tuple[str, ...] = ()
    unless: Refusal = lambda node: None
    unless_integers: Refusal | None = None
    lower: Lower = field(init=False)

    def __call__(self, lower: Lower) -> Lower:
        self.lower = lower
        RULES.update(dict.fromkeys((self.target, *self.forms), self))
        return lower

    @property
    def name(self) -> str:
        """Such as "add.Tensor", without the namespace: what configs call their `target_name`."""
        return ".".join(self.target.__name__.split(".")[-2:])


lowers = Rule
RULES: dict[Any, Rule] = {}
_NONE = Rule(None)


def rule_of(node: Node) -> Rule:
    """The rule of a call; an empty one for operators that are not in the table."""
    return RULES.get(node.target, _NONE)
