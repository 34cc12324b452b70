"""What is known of a value of the original program: on which tokens each of its entries depends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.torch_internals import schema_of


class Kind(Enum):
    FIXED = auto()  # on nothing
    LENGTH = auto()  # on the number of tokens alone
    ROWS = auto()  # entry i along `row` on tokens 0..i
    PADDED = auto()  # rows behind `before` entries of a constant
    LONGER = auto()  # rows, and behind them entries that look beyond the last token
    SCORES = auto()  # an entry on the tokens up to the larger of its indices along `row` and `col`
    WEIGHTS = auto()  # scores, zero where col > row: after softmax along `col`, or a product
    LAST = auto()  # on all tokens, without a dim for them


# Of a query and a key: weights are scores, too.
PAIRS = (Kind.SCORES, Kind.WEIGHTS)


@dataclass(frozen=True)
class TokenMask:
    """A mask that depends on tokens, such as that of padding.

    at     the call that applies it to scores
    given  its operand of `at`: a condition, or numbers that are added
    hides  what the condition is where it hides; None of numbers
    sign   -1 of numbers that are subtracted
    """

    at: Node
    given: Node
    hides: bool | None
    sign: int = 1


@dataclass(frozen=True)
class Bounds:
    """Between which numbers an entry is, whatever the tokens are, for each query and key.

    places     uint8 [queries or 1, keys or 1]: between which
    low, high  float64 [count]; infinite where nothing is known
    assumes    inputs of integers of which it holds only where they are 0 or 1
    """

    places: Tensor
    low: Tensor
    high: Tensor
    assumes: frozenset[Node] = frozenset()

    def where(self, test: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """`test` of lowest and highest numbers, at their places."""
        return look_up(test(self.low, self.high), [self.places])


def look_up(table: Tensor, places: list[Tensor]) -> Tensor:
    """[queries or 1, keys or 1]: the entries of `table`, a dim of which each of `places` says."""
    shape = torch.broadcast_shapes(*(p.shape for p in places))
    found, step = torch.empty(shape, dtype=table.dtype), 256
    for i in range(0, shape[0], step):  # an index takes eight times the memory
        found[i : i + step] = table[
            tuple(p[i if len(p) > 1 else 0 :][:step].long() for p in places)
        ]
    return found


@dataclass(frozen=True)
class Value:
    """`row` and `col` are dims of the tensor.

    hidden  SCORES: floats [maximum, maximum], below zero where a mask has taken the score out, so
            that its weight will be exactly zero: how far below the others it is; None: nowhere
    bounds  ROWS, SCORES, WEIGHTS that are a mask, or make one; None: nothing is known
    masks   SCORES: what may have taken out more of them than `hidden` says
    before  PADDED: entries before that of the first token
    beside  SCORES, WEIGHTS: columns behind those of the keys, which are of no token (a sink)
    shifted SCORES: right but for an amount that is the same for all keys of a query, and that the
            number of tokens may change
    """

    kind: Kind
    row: int | None = None
    col: int | None = None
    hidden: Tensor | None = None
    bounds: Bounds | None = None
    masks: tuple[TokenMask, ...] = ()
    before: int = 0
    beside: int = 0
    shifted: bool = False

    def dims(self) -> dict[int, str]:
        """Dim -> "row" or "col"."""
        found = {} if self.row is None else {self.row: "row"}
        if self.col is not None:
            found[self.col] = "col"
        return found


def arguments(node: Node) -> Any:
    """The arguments of a call, without fx's type of all that arguments may be."""
    return node.args


def bound_arguments(node: Node) -> dict[str, Any]:
    """The arguments of an operator's call by their names, defaults among them."""
    parameters = schema_of(node.target).arguments
    defaults = {p.name: p.default_value for p in parameters if p.has_default_value()}
    names = [p.name for p in parameters]
    return {**defaults, **dict(zip(names, node.args, strict=False)), **node.kwargs}


FIXED = Value(Kind.FIXED)
LENGTH = Value(Kind.LENGTH)
LAST = Value(Kind.LAST)
