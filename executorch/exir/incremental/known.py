"""Entries of masks that are the same number whatever the tokens are.

A mask that tokens make of their own, such as of padding, hides later tokens all the same:
`1 - causal * attention_mask` is one there. Operators are evaluated on the few numbers that there
are, not on each entry.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.lengths import MOST_ELEMENTS
from executorch.exir.incremental.masks import (
    ADD,
    AND,
    EQUAL,
    FILL,
    KEEP,
    NOT,
    OR,
    SCALE,
    SUBTRACT,
    TIMES,
    UNEQUAL,
    WHERE,
    alpha,
    is_below_infinity,
    is_scores,
    planes_of,
)
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import Kind, Known, arguments, look_up

aten = torch.ops.aten

_EVALUATED = {
    *KEEP, *ADD, *SUBTRACT, *TIMES, *SCALE, *AND, *OR, *NOT, *EQUAL, *UNEQUAL, aten.rsub.Scalar,
    aten.rsub.Tensor, aten.neg.default, aten.abs.default, aten.clamp.default,
    aten.clamp_min.default, aten.clamp_max.default, aten.gt.Scalar, aten.gt.Tensor,
    aten.ge.Scalar, aten.ge.Tensor, aten.lt.Scalar, aten.lt.Tensor, aten.le.Scalar,
    aten.le.Tensor, aten.logical_xor.default, aten.bitwise_xor.Tensor, aten.minimum.default,
    aten.maximum.default,
}  # fmt: skip

# Numbers of a table that are told apart.
_MOST_NUMBERS = 16

_ALL = torch.zeros(1, 1, dtype=torch.uint8)
_UNKNOWN = Known(_ALL, torch.tensor([math.nan], dtype=torch.float64))
_IRRELEVANT = Known(_ALL, torch.zeros(1, dtype=torch.float64))


def known_after(rw: Rewriter, node: Node, row: int, col: int) -> Known | None:
    """`known` of an elementwise operator's result."""
    target, given = node.target, arguments(node)
    if rw.maximum**2 > MOST_ELEMENTS or target not in _EVALUATED | FILL | WHERE:
        return None
    operands = [_known_of(rw, node, a, row, col) for a in given]
    grid = torch.meshgrid(*(k.numbers for k in operands), indexing="ij")
    if target in FILL:
        rest, condition, number = grid[:3]
        found = _chosen(condition, number, rest)
    elif target in WHERE:
        found = _chosen(*grid[:3])
    else:
        found = _evaluated(node, grid)
        found = _absorbed(rw, node, grid[:2], found)
    return _joined(operands, found.to(node.meta["val"].dtype).to(torch.float64), found.isnan())


def zero_later(rw: Rewriter) -> Known | None:
    if rw.maximum**2 > MOST_ELEMENTS:
        return None
    places = torch.ones(rw.maximum, rw.maximum, dtype=torch.uint8).triu(1)
    return Known(places, torch.tensor([math.nan, 0.0], dtype=torch.float64))


def _known_of(rw: Rewriter, node: Node, given: Any, row: int, col: int) -> Known:
    """Of an operand, or of a number for all entries."""
    if isinstance(given, (int, float)):
        return Known(_ALL, torch.tensor([given], dtype=torch.float64))
    if not isinstance(given, Node):  # the type that is asked for
        return _IRRELEVANT
    if is_scores(rw, given):
        value = rw.values[given]
        found = zero_later(rw) if value.kind is Kind.WEIGHTS else None
        return value.known or found or _UNKNOWN
    planes = planes_of(rw, node, given, row, col)
    if planes is None or planes.is_complex() or planes.numel() == 0:
        return _UNKNOWN
    ends = (planes[:, [0, -1]].flatten(), planes[:, :, [0, -1]].flatten())
    numbers = torch.cat(ends).unique()[:_MOST_NUMBERS]
    places = torch.zeros(planes.shape[1:], dtype=torch.uint8)
    for i, number in enumerate(numbers, 1):
        places[(planes == number).all(0)] = i
    unknown = torch.tensor([math.nan], dtype=torch.float64)
    return Known(places, torch.cat([unknown, numbers.to(torch.float64)]))


def _evaluated(node: Node, grid: tuple[Tensor, ...]) -> Tensor:
    """What the operator makes of numbers; NaN where one of them is not known."""
    operands = []
    for given, numbers in zip(arguments(node), grid, strict=True):
        is_tensor = isinstance(given, Node)
        operands.append(numbers.nan_to_num(0.0).to(given.meta["val"].dtype) if is_tensor else given)
    unknown = torch.stack([n.isnan() for n in grid]).any(0)
    found = node.target(*operands, **node.kwargs).to(torch.float64)  # type: ignore[operator]
    return found.expand(unknown.shape).masked_fill(unknown, math.nan)


def _absorbed(rw: Rewriter, node: Node, grid: tuple[Tensor, ...], found: Tensor) -> Tensor:
    """The result where one operand decides what it is."""
    target = node.target
    if target in AND | TIMES:
        decides, result = [n == 0 for n in grid], 0.0
    elif target in OR and node.meta["val"].dtype == torch.bool:
        decides, result = [n.abs() > 0 for n in grid], 1.0
    elif target in ADD and alpha(node) == 1 and _are_below_infinity(rw, node):
        decides, result = [n == -math.inf for n in grid], -math.inf
    else:
        return found
    return found.masked_fill(torch.stack(decides).any(0), result)


def _are_below_infinity(rw: Rewriter, node: Node) -> bool:
    return all(is_below_infinity(rw, a) for a in arguments(node)[:2] if is_scores(rw, a))


def _chosen(condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    either = torch.where(yes == no, yes, math.nan)
    return torch.where(condition == 0, no, torch.where(condition.abs() > 0, yes, either))


def _joined(operands: list[Known], found: Tensor, unknown: Tensor) -> Known | None:
    """`found` [numbers of the first operand, of the second, ...] at each entry's place."""
    distinct = found[~unknown].unique()
    if distinct.numel() == 0 or distinct.numel() > 255:
        return None
    places = torch.searchsorted(distinct, found) + 1
    table = places.masked_fill(unknown, 0).to(torch.uint8)
    joined = look_up(table, [k.places for k in operands])
    numbers = torch.cat([torch.tensor([math.nan], dtype=torch.float64), distinct])
    return Known(joined, numbers) if bool(joined.any()) else None
