"""Masks that depend on tokens, such as on which of them are padding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.masks import (
    ADD,
    FILL,
    KEEP,
    WHERE,
    Choice,
    alpha,
    choice_of,
    is_below_infinity,
    is_maximum_with_low,
    is_of_tokens,
    is_scores,
    low_number,
    where_all,
)
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import TokenMask, Value, arguments

aten = torch.ops.aten

Plane = Tensor | None

_AND = {aten.logical_and.default, aten.bitwise_and.Tensor}
_OR = {aten.logical_or.default, aten.bitwise_or.Tensor}
_NOT = {aten.logical_not.default, aten.bitwise_not.default}
_EQUAL = {aten.eq.Scalar, aten.eq.Tensor}
_UNEQUAL = {aten.ne.Scalar, aten.ne.Tensor}
_TIMES = {aten.mul.Tensor}


def masks_after(rw: Rewriter, node: Node, added: list[TokenMask]) -> tuple[TokenMask, ...]:
    """`masks` of an elementwise operator's result, among them `added` ones."""
    values = [rw.values[n] for n in node.all_input_nodes]
    masks = [m for v in values if isinstance(v, Value) for m in v.masks]
    is_followed = node.target in KEEP | ADD | FILL | WHERE or is_maximum_with_low(rw, node)
    added_before = [m.given.name for m in masks if m.hides is None]
    if added_before and not is_followed:
        raise NotCausalError(
            node, f"{added_before[0]} is a mask that tokens make themselves, which this may undo"
        )
    choice = choice_of(rw, node)
    if choice is not None and is_of_tokens(rw, choice.condition):
        is_low = low_number(rw, node, choice.number) is not None
        masks += [_mask_of(node, choice)] if is_low else []
    return tuple(dict.fromkeys([*masks, *added]))


def _mask_of(node: Node, choice: Choice) -> TokenMask:
    """Of what a condition says that may be made in each layer anew, by an operator or two."""
    condition, hides = choice.condition, choice.holds
    while condition.target in _NOT and condition.meta["val"].dtype == torch.bool:
        condition, hides = arguments(condition)[0], not hides
    return TokenMask(node, condition, hides)


def added_mask(node: Node, operand: Node) -> TokenMask | None:
    """Of numbers that tokens say of keys, where they are added to something."""
    return TokenMask(node, operand, None) if node.target in ADD and alpha(node) == 1 else None


def known_truths(rw: Rewriter, node: Node, row: int, col: int) -> tuple[Plane, Plane]:
    """`never` and `always` of an elementwise operator's result."""
    target, given = node.target, arguments(node)
    dtype = node.meta["val"].dtype
    if dtype.is_floating_point:
        return _never_added(rw, node, row, col), None
    if target in KEEP | _NOT | _EQUAL | _UNEQUAL:
        return _after_one(rw, node)
    if target not in _AND | _OR | _TIMES or (target not in _TIMES and dtype != torch.bool):
        return None, None
    never = [_truth(rw, node, a, row, col, False) for a in given[:2]]
    always = [_truth(rw, node, a, row, col, True) for a in given[:2]]
    if target in _OR:
        return _both(never), _either(always)
    return _either(never), None if target in _TIMES else _both(always)


def _after_one(rw: Rewriter, node: Node) -> tuple[Plane, Plane]:
    """Of bools or integers: the same truths, or the opposite ones."""
    target, given = node.target, arguments(node)
    if not is_scores(rw, given[0]) or given[0].meta["val"].dtype.is_floating_point:
        return None, None
    value, dtype = rw.values[given[0]], given[0].meta["val"].dtype
    if target in KEEP:
        return value.never, value.always
    if target is aten.bitwise_not.default and dtype != torch.bool:
        return None, None
    if target in _EQUAL | _UNEQUAL and not _is_all(rw, given[1], 0):
        return None, None
    if target in _UNEQUAL:
        return value.never, value.always
    return value.always, value.never


def _is_all(rw: Rewriter, given: Any, number: float) -> bool:
    """Whether an operand is this number, or a tensor of it."""
    if isinstance(given, Node):
        return not is_of_tokens(rw, given) and bool((rw.lengths.longest(given) == number).all())
    return isinstance(given, (int, float)) and given == number


def _truth(rw: Rewriter, node: Node, given: Node, row: int, col: int, truth: bool) -> Plane:
    if is_scores(rw, given):
        if given.meta["val"].dtype.is_floating_point:
            return None
        return rw.values[given].always if truth else rw.values[given].never
    return where_all(rw, node, given, row, col, lambda m: m.to(torch.bool) == truth)


def _either(planes: list[Plane]) -> Plane:
    known = [p for p in planes if p is not None]
    return torch.stack(known).any(0) if known else None


def _both(planes: list[Plane]) -> Plane:
    known = [p for p in planes if p is not None]
    return torch.stack(known).all(0) if len(known) == len(planes) else None


def _never_added(rw: Rewriter, node: Node, row: int, col: int) -> Plane:
    """Where floats are minus infinity, whatever the tokens are."""
    target, given = node.target, arguments(node)
    if target in KEEP:
        is_float = given[0].meta["val"].dtype.is_floating_point
        return rw.values[given[0]].never if is_scores(rw, given[0]) and is_float else None
    choice = choice_of(rw, node)
    if choice is not None and is_of_tokens(rw, choice.condition):
        value = rw.values[choice.condition]
        surely = value.always if choice.holds else value.never
        return surely if _is_all(rw, choice.number, -torch.inf) else None
    if target not in ADD or alpha(node) != 1:
        return None
    if not all(is_below_infinity(rw, a) for a in given[:2] if is_scores(rw, a)):
        return None
    return _either(
        [
            rw.values[a].never
            if is_scores(rw, a)
            else where_all(rw, node, a, row, col, lambda m: m == -torch.inf)
            for a in given[:2]
        ]
    )
