"""Scores that are zero for later tokens, and so count nothing in a sum over the keys.

Linear attention and retention make them so by a product with a mask; a softmax that is written out,
and sigmoids in its place, by a mask that leaves scores low.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.masks import all_later, hides_later, where_all
from executorch.exir.incremental.operators import ADD, FILL, OVER, SUBTRACT, TIMES, WHERE
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import PAIRS, Kind, Value, arguments

aten = torch.ops.aten

# Zero stays zero.
_KEEPS_ZERO = {
    aten.dropout.default, aten.to.dtype, aten.to.dtype_layout, aten.to.device,
    aten._to_copy.default, aten.relu.default, aten.neg.default, aten.abs.default,
    aten.nan_to_num.default, aten.tanh.default, aten.sqrt.default,
}  # fmt: skip
# What is as low as a mask, or lower, becomes zero.
_LOW_TO_ZERO = {aten.exp.default, aten.exp2.default, aten.sigmoid.default, aten.relu.default}


def is_zero_later(rw: Rewriter, node: Node, row: int, col: int) -> bool:
    """Whether an elementwise operator of scores or weights gives zero for all later tokens."""
    given, target = arguments(node), node.target
    if target in TIMES:
        return any(_is_zero(rw, node, a, row, col) for a in given[:2])
    if target in ADD | SUBTRACT:
        return all(_is_zero(rw, node, a, row, col) for a in given[:2])
    if target in FILL:
        rest = _is_zero(rw, node, given[0], row, col)
        return _is_number_zero(rw, given[2]) and (rest or _holds(rw, node, given[1], row, col))
    if target in WHERE:
        condition, yes, no = given
        zero, rest = (no, yes) if _is_number_zero(rw, no) else (yes, no)
        if not _is_number_zero(rw, zero):
            return _is_zero(rw, node, yes, row, col) and _is_zero(rw, node, no, row, col)
        is_hidden = _holds(rw, node, condition, row, col, zero is yes)
        return is_hidden or _is_zero(rw, node, rest, row, col)
    if _is_weights(rw, given[0]) and target in OVER:  # zero over zero is no number
        return not _is_zero(rw, node, given[1], row, col)
    if _is_weights(rw, given[0]) and target in _KEEPS_ZERO:
        return True
    return target in _LOW_TO_ZERO and hides_later(rw, rw.values[given[0]].hidden)


def classify_tril(rw: Rewriter, node: Node) -> Value:
    value = rw.operand_value(node, 0)
    rank = node.meta["val"].dim()
    diagonal = arguments(node)[1] if len(arguments(node)) > 1 else 0
    if value.kind not in PAIRS or (value.row, value.col, diagonal) != (rank - 2, rank - 1, 0):
        raise NotCausalError(node, "a triangle that is not of queries and the keys up to theirs")
    if value.shifted or value.beside:
        raise NotCausalError(node, "a triangle of scores beside which there are sinks, or shifted")
    return Value(Kind.WEIGHTS, value.row, value.col)


def make_tril(rw: Rewriter, node: Node) -> Node:
    value = rw.values[node]
    at = {"row": value.row, "col": value.col}
    like = torch.empty([1] * node.meta["val"].dim(), dtype=torch.bool)
    mask = rw.mask(at, like, rw.maximum, torch.tensor(True), torch.tensor(False))
    zero = rw.call(aten.full.default, [], 0, dtype=node.meta["val"].dtype)
    return rw.call(aten.where.self, mask, rw.rows(arguments(node)[0]), zero)


def _is_weights(rw: Rewriter, given: Any) -> bool:
    return isinstance(given, Node) and rw._is(given, Kind.WEIGHTS)


def _is_number_zero(rw: Rewriter, given: Any) -> bool:
    if isinstance(given, Node):
        is_known = rw.values[given].kind is Kind.FIXED and isinstance(given.meta["val"], Tensor)
        return is_known and not bool(rw.lengths.longest(given).any())
    return isinstance(given, (int, float)) and given == 0


def _is_zero(rw: Rewriter, node: Node, given: Any, row: int, col: int) -> bool:
    """Whether an operand is zero for all later tokens."""
    if not isinstance(given, Node) or rw.values[given].kind in (Kind.ROWS, Kind.SCORES):
        return False
    if _is_weights(rw, given):
        return True
    return all_later(rw, where_all(rw, node, given, row, col, lambda m: m == 0))


def _holds(
    rw: Rewriter, node: Node, condition: Node, row: int, col: int, holds: bool = True
) -> bool:
    """Whether a condition is `holds` for all later tokens."""
    return all_later(rw, where_all(rw, node, condition, row, col, lambda m: m == holds))
