"""Masks that depend on tokens, such as on which of them are padding."""

from __future__ import annotations

import torch
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.masks import (
    Choice,
    choice_of,
    is_maximum_with_low,
    is_of_tokens,
    low_number,
)
from executorch.exir.incremental.operators import ADD, FILL, KEEP, NOT, SUBTRACT, WHERE, alpha
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import TokenMask, Value, arguments


def masks_after(rw: Rewriter, node: Node, added: list[TokenMask]) -> tuple[TokenMask, ...]:
    """`masks` of an elementwise operator's result, among them `added` ones."""
    values = [rw.values[n] for n in node.all_input_nodes]
    masks = [m for v in values if isinstance(v, Value) for m in v.masks]
    is_followed = node.target in KEEP | ADD | SUBTRACT | FILL | WHERE or is_maximum_with_low(
        rw, node
    )
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
    while condition.target in NOT and condition.meta["val"].dtype == torch.bool:
        condition, hides = arguments(condition)[0], not hides
    return TokenMask(node, condition, hides)


def added_mask(node: Node, operand: Node) -> TokenMask | None:
    """Of numbers that tokens say of keys, where they are added to something, subtracted from it, or
    stand in its place."""
    if node.target in FILL | WHERE:
        return TokenMask(node, operand, None)
    if node.target not in ADD | SUBTRACT or alpha(node) != 1:
        return None
    is_subtracted = node.target in SUBTRACT and arguments(node)[0] is not operand
    return TokenMask(node, operand, None, -1 if is_subtracted else 1)
