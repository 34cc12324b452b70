"""Queries that see no key, because tokens say so (token_masks.py).

A softmax of scores that are all equally low gives later tokens as much weight as others, so that
what is computed for such a query changes with every token that is added. Only a running program
knows whether there is one. It looks for the first in each call and does not count it, nor what
follows it, as kept: the next call computes them anew.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.masks import SMALL, where_holds
from executorch.exir.incremental.rewriter import ROWS, Rewriter, window_of
from executorch.exir.incremental.rules import operand_of
from executorch.exir.incremental.values import TokenMask, Value

aten = torch.ops.aten


def first_fully_masked(rw: Rewriter, end: Node) -> Node | None:
    """The place of the first of the new queries that may see none, `end` where each sees some, as
    int64 of rank 0; None where no mask depends on tokens."""
    first: Node | None = None
    for node, value in _each_once(rw):
        with rw.source(node):
            sees = _sees(rw, node, value)
            places = rw.call(aten.where.self, sees, end, rw.positions(ROWS))
            dims = list(range(places.meta["val"].dim()))
            place = rw.call(aten.amin.default, places, dims)
            first = place if first is None else rw.call(aten.minimum.default, first, place)
    return first


def _each_once(rw: Rewriter) -> list[tuple[Node, Value]]:
    """Layers with the same masks, once: (softmax, its scores)."""
    found: dict[Any, list[tuple[Node, Value]]] = {}
    for node, value in rw.masked_by_tokens:
        key = tuple((m.given, m.hides, m.sign, _place(rw, node, m)) for m in value.masks)
        alike = found.setdefault(key, [])
        if not any(_is_same(known.hidden, value.hidden) for _, known in alike):
            alike.append((node, value))
    return [each for alike in found.values() for each in alike]


def _is_same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b or (a is not None and b is not None and torch.equal(a, b))


def _place(rw: Rewriter, node: Node, mask: TokenMask) -> tuple[int, int]:
    """The dims of queries and keys where the mask meets scores, counted from the last."""
    value, rank = rw.values[mask.at], mask.at.meta["val"].dim()
    place = (value.row - rank, value.col - rank)
    if set(place) != {-2, -1}:
        raise NotCausalError(node, f"{mask.given.name} hides keys along dims that are not the last")
    return place


def _sees(rw: Rewriter, node: Node, value: Value) -> Node:
    """Which of the new queries see a key: bools [..., N], or with 1 for N."""
    places = {_place(rw, node, m) for m in value.masks}
    given = [operand_of(rw, m.at, m.given, ROWS) for m in value.masks]
    if len(places) != 1 or sum(_is_by_batch(g) for g in given) > 1:
        raise NotCausalError(node, "several masks that depend on tokens, of different layouts")
    ((row, col),) = places
    visible = [_visible(rw, m, g) for m, g in zip(value.masks, given, strict=True)]
    if not _covers(rw, value) or any(g.meta["val"].dim() < 2 for g in given):
        visible.append(_plane(rw, value, {"row": row + 2, "col": col + 2}))
    sees = rw.call(aten.any.dim, _all(rw, visible), col)
    for mask, numbers in zip(value.masks, given, strict=True):
        if mask.hides is None:  # what is raised may show what was hidden
            is_small = aten.le.Scalar if mask.sign > 0 else aten.ge.Scalar
            is_low = rw.call(is_small, numbers, mask.sign * SMALL)
            sees = _all(rw, [sees, rw.call(aten.all.dim, is_low, col)])
    return sees


def _is_by_batch(given: Node) -> bool:
    return any(n != 1 for n in given.meta["val"].shape[:-2])


def _all(rw: Rewriter, bools: list[Node]) -> Node:
    both, *others = bools
    for other in others:
        both = rw.call(aten.logical_and.default, both, other)
    return both


def _visible(rw: Rewriter, mask: TokenMask, given: Node) -> Node:
    if mask.hides is None:
        return rw.call(aten.le.Scalar, rw.call(aten.abs.default, given), SMALL)
    return rw.call(aten.logical_not.default, given) if mask.hides else given


def _covers(rw: Rewriter, value: Value) -> bool:
    """Whether the masks of tokens hide, themselves, all that is hidden whatever the tokens are."""
    assert value.hidden is not None
    rest = value.hidden < 0
    for mask in value.masks:
        hides = mask.hides
        surely = None if hides is None else where_holds(rw, mask.given, hides)
        if surely is not None:
            rest = rest & ~surely
    return not bool(rest.any())


def _plane(rw: Rewriter, value: Value, at: dict[str, int]) -> Node:
    """What is not hidden whatever the tokens are: bools of new queries and all keys."""
    assert value.hidden is not None
    plane = value.hidden >= 0
    window = window_of(plane) if bool(plane[0, 0]) else None
    if window is not None:
        like = torch.empty(1, 1, dtype=torch.bool)
        return rw.mask(at, like, window, plane[0, 0], plane[0, -1])
    plane = plane if at["row"] < at["col"] else plane.t()
    table = rw.equal_table(plane) or rw.constant(f"plane_{len(rw.added)}", plane.contiguous())
    return rw.entries(table, {at["row"]: "row", at["col"]: "col"})
