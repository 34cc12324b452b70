"""Sums of products by letters: which of them are tokens says what the result is.

Kept as they are, since what they are made of joins dims, those of tokens among them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import PAIRS, Kind, Value, arguments

EINSUM = torch.ops.aten.einsum.default
_MOST_OPERANDS = 2


def is_understood(node: Node) -> bool:
    """Others are composed of several products. With one letter of dynamic extent, that of tokens,
    it makes each token's numbers of its own, however many operands there are."""
    operands = arguments(node)[1]
    inputs, out = _letters(node)
    dynamic = {
        letter
        for operand, letters in zip(operands, inputs, strict=True)
        for letter, extent in zip(letters, operand.meta["val"].shape, strict=True)
        if isinstance(extent, SymInt)
    }
    return len(operands) <= _MOST_OPERANDS or (len(dynamic) == 1 and dynamic <= set(out))


def classify_einsum(rw: Rewriter, node: Node) -> Value:
    operands = arguments(node)[1]
    inputs, out = _letters(node)
    found = [(rw.values[n], letters) for n, letters in zip(operands, inputs, strict=True)]
    for operand, (value, letters) in zip(operands, found, strict=True):
        if len(set(letters)) < len(letters):
            raise NotCausalError(node, f"{operand.name} has one letter for two dims")
        if value.kind is Kind.LENGTH:
            rw.lengths.prove([operand])
    tokens = [_token_letters(rw, n, v, at) for n, (v, at) in zip(operands, found, strict=True)]
    pairs = [i for i, (value, _) in enumerate(found) if value.kind in PAIRS]
    if pairs:
        return _of_pairs(node, found, tokens, pairs, out)
    rows = {letter for letters in tokens for letter in letters.values()}
    if not rows <= set(out):
        raise NotCausalError(node, "it sums over tokens, but is no attention")
    places = sorted(out.index(letter) for letter in rows)
    if len(places) == 1:
        return Value(Kind.ROWS, places[0])
    if [value.kind for value, _ in found] != [Kind.ROWS, Kind.ROWS]:
        raise NotCausalError(node, "scores of positions, no attention")
    return Value(Kind.SCORES, places[0], places[1])


def _of_pairs(
    node: Node, found: list[Any], tokens: list[dict[str, str]], pairs: list[int], out: str
) -> Value:
    """Of scores or weights: with something that is no token's, or summed with values."""
    at = pairs[0]
    value, row, col = found[at][0], tokens[at]["row"], tokens[at]["col"]
    others = [i for i in range(len(found)) if i != at]
    if any(value.shifted or value.beside for value in (found[i][0] for i in pairs)):
        raise NotCausalError(node, "a product of scores beside which there are sinks, or shifted")
    if row in out and col in out and not any(tokens[i] for i in others):
        return Value(value.kind, out.index(row), out.index(col))
    values = [found[i][0].kind for i in others]
    is_of_values = value.kind is Kind.WEIGHTS and values == [Kind.ROWS] and row in out
    if is_of_values and col not in out and tokens[others[0]] == {"row": col}:
        return Value(Kind.ROWS, out.index(row))
    raise NotCausalError(node, "it sums over tokens, but is no attention")


def make_einsum(rw: Rewriter, node: Node) -> Node:
    equation, operands = arguments(node)[:2]
    inputs, out = _letters(node)
    row = out[rw.values[node].row]
    given = [_operand(rw, n, letters, row) for n, letters in zip(operands, inputs, strict=True)]
    return rw.call(EINSUM, equation, given)


def _operand(rw: Rewriter, operand: Node, letters: str, row: str) -> Node:
    value = rw.values[operand]
    if value.kind is Kind.ROWS and letters[value.row] != row:
        return rw.full(operand)  # type: ignore[no-any-return]
    if value.kind is Kind.LENGTH:
        return rw.table(operand, {letters.index(row): "row"})
    return rw.now(operand) if value.kind is Kind.FIXED else rw.rows(operand)  # type: ignore[no-any-return]


def _letters(node: Node) -> tuple[list[str], str]:
    """Those of each operand, and of the result; other ones for the dims of an ellipsis."""
    equation, operands = arguments(node)[:2]
    given, arrow, out = equation.replace(" ", "").partition("->")
    inputs = given.split(",")
    ranks = [
        n.meta["val"].dim() - len(s.replace("...", ""))
        for n, s in zip(operands, inputs, strict=True)
    ]
    more = "".join(chr(0x100 + i) for i in range(max(ranks)))
    if not arrow:
        letters = given.replace(",", "").replace("...", "")
        out = "..." + "".join(sorted(s for s in set(letters) if letters.count(s) == 1))
    expanded = [s.replace("...", more[len(more) - n :]) for s, n in zip(inputs, ranks, strict=True)]
    return expanded, out.replace("...", more)


def _token_letters(rw: Rewriter, operand: Node, value: Value, letters: str) -> dict[str, str]:
    """ "row", and perhaps "col" -> the letter of the dim."""
    if value.kind is Kind.LENGTH:
        fake: Tensor = operand.meta["val"]
        dims = token_dims(fake, rw.symbol)
        others = [n for d, n in enumerate(fake.shape) if d not in dims]
        if len(dims) != 1 or any(rw.lengths.differs(n) for n in others):
            raise NotCausalError(operand, "a table of another length than the text's is a factor")
        return {"row": letters[dims[0]]}
    return {role: letters[dim] for dim, role in value.dims().items()}
