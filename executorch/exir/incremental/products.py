"""Products of matrices: linear layers, and the two products of a written attention."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir.incremental.elementwise import aligned, check_table_dims
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.masks import all_later, hidden_by_addend, where_all
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.sources import require_no_mask
from executorch.exir.incremental.values import PAIRS, Kind, Value, arguments

aten = torch.ops.aten

# Where their first matrix is, before which an addend may be.
PRODUCTS: dict[Any, int] = {
    aten.matmul.default: 0, aten.bmm.default: 0, aten.mm.default: 0, aten.addmm.default: 1,
    aten.baddbmm.default: 1,
}  # fmt: skip


def classify_linear(rw: Rewriter, node: Node) -> Value:
    value = rw.operand_value(node, 0)
    rank = node.meta["val"].dim()
    weights = [rw.operand_value(node, i).kind for i in range(1, len(arguments(node)))]
    if value.kind is not Kind.ROWS or value.row == rank - 1 or set(weights) - {Kind.FIXED}:
        raise NotCausalError(node, "a linear over the tokens, or whose weight depends on them")
    return value


def classify_product(rw: Rewriter, node: Node) -> Value:
    first = PRODUCTS[node.target]
    value = _product_value(rw, node, arguments(node)[first], arguments(node)[first + 1])
    if first == 1:
        addend = arguments(node)[0]
        if rw.values[addend].kind not in (Kind.FIXED, Kind.LENGTH):
            _require_addend_of_tokens(rw, node, addend, value)
        if rw.values[addend].kind is Kind.LENGTH:
            check_table_dims(rw, node, addend, value.dims())
        if value.kind is Kind.SCORES:
            assert value.row is not None and value.col is not None
            hidden = hidden_by_addend(rw, node, value.row, value.col)
            return Value(value.kind, value.row, value.col, hidden)
    return value


def _require_addend_of_tokens(rw: Rewriter, node: Node, addend: Node, value: Value) -> None:
    """Numbers of each row, or of each query or key (ALiBi that does not count padding)."""
    known = rw.values[addend]
    at = None if known.row is None else known.row + aligned(node, addend)
    if known.kind is not Kind.ROWS or at not in value.dims():
        raise NotCausalError(node, "the addend of a product depends on other tokens")
    if at == value.col:
        require_no_mask(rw, node, addend)


def _product_value(rw: Rewriter, node: Node, a: Node, b: Node) -> Value:
    va, vb = rw.values[a], rw.values[b]
    rank_a, rank_b, rank = a.meta["val"].dim(), b.meta["val"].dim(), node.meta["val"].dim()
    if min(rank_a, rank_b) < 2:
        raise NotCausalError(node, "a product with a vector")
    m, k, n = rank_a - 2, rank_a - 1, rank_b - 1
    if va.kind is Kind.WEIGHTS and vb.kind is Kind.ROWS:
        if (va.row, va.col, vb.row) == (m, k, n - 1):
            return Value(Kind.ROWS, rank - 2)
    elif va.kind is Kind.ROWS and vb.kind is Kind.ROWS:
        if va.row == m and vb.row == n:
            return Value(Kind.SCORES, rank - 2, rank - 1)
        if va.row < m and vb.row < n - 1 and va.row + rank - rank_a == vb.row + rank - rank_b:
            return Value(Kind.ROWS, va.row + rank - rank_a)
    elif va.kind is Kind.ROWS and vb.kind is Kind.FIXED and va.row != k:
        return Value(Kind.ROWS, va.row + rank - rank_a)
    elif va.kind is Kind.FIXED and vb.kind is Kind.ROWS and vb.row != n - 1:
        return Value(Kind.ROWS, vb.row + rank - rank_b)
    elif va.kind is Kind.LENGTH and vb.kind is Kind.ROWS and vb.row < n - 1:
        return _by_position(rw, node, a, vb.row + rank - rank_b)
    elif is_triangle(rw, node, a) and rank_a <= rank:
        check_table_dims(rw, node, a, {rank - 2: "row", rank - 1: "col"})
        if all_later(rw, where_all(rw, node, a, rank - 2, rank - 1, lambda m: m == 0)):
            return Value(Kind.ROWS, rank - 2)
        raise NotCausalError(node, f"{a.name}, which weights tokens, is not zero for later ones")
    elif va.kind is Kind.ROWS and vb.kind is Kind.LENGTH and va.row < m:
        return _by_position(rw, node, b, va.row + rank - rank_a)
    raise NotCausalError(node, "a product that sums over tokens, but is no attention")


def _by_position(rw: Rewriter, node: Node, table: Node, row: int) -> Value:
    """Of a product for each token with what its position says."""
    check_table_dims(rw, node, table, {row: "row"})
    return Value(Kind.ROWS, row)


def is_triangle(rw: Rewriter, node: Node, operand: Node) -> bool:
    """Whether it is a table that says how much of each token the sum for another one has."""
    first = PRODUCTS.get(node.target)
    if first is None or operand is not arguments(node)[first]:
        return False
    values = arguments(node)[first + 1]
    is_summed = rw._is(values, Kind.ROWS) and rw.values[values].row == values.meta["val"].dim() - 2
    rank = operand.meta["val"].dim()
    places = token_dims(operand.meta["val"], rw.symbol)
    return rw._is(operand, Kind.LENGTH) and is_summed and places == [rank - 2, rank - 1]


def is_other_side(rw: Rewriter, node: Node, operand: Node) -> bool:
    """Whether all tokens' entries are needed: the keys or the values of a written attention, or
    what the keys have beside queries."""
    first = PRODUCTS.get(node.target)
    if first is None or (first == 1 and operand is arguments(node)[0]):
        if not rw._is(operand, Kind.ROWS) or not rw._is(node, *PAIRS):
            return False
        return bool(rw.values[operand].row + aligned(node, operand) == rw.values[node].col)
    if operand is not arguments(node)[first + 1]:
        return False
    left = arguments(node)[first]
    is_summed = rw._is(left, Kind.WEIGHTS) or is_triangle(rw, node, left)
    return is_summed or rw._is(node, Kind.SCORES)
