"""Which scores a mask takes out, and whether that is all that look ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import MOST_ELEMENTS
from executorch.exir.incremental.operators import (
    ADD,
    FILL,
    KEEP,
    MAXIMUM,
    OVER,
    SUBTRACT,
    TIMES,
    WHERE,
    alpha,
)
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.sources import (
    LOW,
    constant_sizes,
    is_own_of_tokens,
    is_pointwise,
    is_scores,
    large_in,
    require_far_below,
    sources,
)
from executorch.exir.incremental.values import (
    PAIRS,
    Bounds,
    Kind,
    TokenMask,
    Value,
    arguments,
    look_up,
)

aten = torch.ops.aten

# No number of a mask counts for more, infinity neither.
_LOWEST = -1e9
# What a product or quotient must leave of it.
_STILL_LOW = -1e3

_MASKS = "a mask is false, or -1e4 or less"

# Beside scores this much makes none low, nor shows what was hidden.
SMALL = 100.0

# What is added to low scores is less than they are by this factor, so that they stay low.
_MARGIN = 100
# What is added to the lowest and is no larger does not show what was hidden.
HIGHEST = -_LOWEST / _MARGIN


@dataclass(frozen=True)
class Choice:
    """An operator puts `number` in the place of `rest` where `condition` is `holds`."""

    condition: Node
    holds: bool
    number: Any
    rest: Any


def choice_of(rw: Rewriter, node: Node) -> Choice | None:
    """What replaces scores; where there are none, the low number of two."""
    given, target = arguments(node), node.target
    if target in FILL:
        return Choice(given[1], True, given[2], given[0])
    if target not in WHERE:
        return None
    chosen = [not is_scores(rw, a) for a in given[1:]]
    if all(chosen):
        chosen = [low_number(rw, node, a) is not None for a in given[1:]]
    if sum(chosen) != 1:
        return None
    condition, yes, no = given
    return Choice(condition, True, yes, no) if chosen[0] else Choice(condition, False, no, yes)


def is_of_tokens(rw: Rewriter, node: Any) -> bool:
    return isinstance(node, Node) and rw.values[node].kind not in (Kind.FIXED, Kind.LENGTH)


def hidden_after(
    rw: Rewriter, node: Node, row: int, col: int, bounds: Bounds | None
) -> Tensor | None:
    """`hidden` of an elementwise operator's result, which is within `bounds`."""
    if not node.meta["val"].dtype.is_floating_point:
        return None
    is_own = is_own_of_tokens(rw, *node.all_input_nodes)
    hidden = _hidden_of_operands(rw, node, row, col, is_own)
    low = _low_within(rw, bounds) if is_own else None
    return low if hidden is None else hidden if low is None else torch.minimum(hidden, low)


def _low_within(rw: Rewriter, bounds: Bounds | None, sign: int = 1) -> Tensor | None:
    """`hidden` of numbers within these bounds, which are added or, of sign -1, subtracted."""
    if bounds is None:
        return None
    highest = bounds.high if sign > 0 else -bounds.low
    if not bool((highest <= LOW).any()):
        return None
    rw.flags |= bounds.assumes
    levels = torch.where(highest <= LOW, highest, 0.0).clamp(min=_LOWEST).to(torch.float32)
    return look_up(levels, [bounds.places]).expand(rw.maximum, rw.maximum)


def _hidden_of_operands(
    rw: Rewriter, node: Node, row: int, col: int, is_own: bool
) -> Tensor | None:
    found = [rw.values[n].hidden for n in node.all_input_nodes if is_scores(rw, n)]
    before = found[0] if len(found) == 1 else None
    given, target = arguments(node), node.target
    if target in ADD | SUBTRACT:
        return _hidden_by_sum(rw, node, found, row, col)
    choice = choice_of(rw, node)
    if choice is not None:
        return _hidden_by_choice(rw, node, choice, row, col)
    if target in KEEP:
        return before
    is_times_number = target in TIMES and isinstance(given[1], (int, float))
    if is_times_number and abs(given[1]) >= -LOW and not is_own:
        raise NotCausalError(node, "scores times a number as large as a mask's")
    if target in TIMES | OVER and before is not None:
        return _scaled(rw, node, before)
    if before is not None and is_maximum_with_low(rw, node):
        return before.clamp(min=low_number(rw, node, _other(rw, node)))
    return None


def is_maximum_with_low(rw: Rewriter, node: Node) -> bool:
    """Whether it takes the place of lower scores alone."""
    return node.target in MAXIMUM and low_number(rw, node, _other(rw, node)) is not None


def require_causal(rw: Rewriter, node: Node, hidden: Tensor | None) -> None:
    if rw.maximum**2 > MOST_ELEMENTS:
        raise NotCausalError(node, f"{rw.maximum} tokens are too many to look at each pair of them")
    if hides_later(rw, hidden):
        return
    if hidden is None:
        raise NotCausalError(node, f"no mask keeps a token from attending to later ones; {_MASKS}")
    row, col = (_later(rw) & (hidden >= 0)).nonzero()[0].tolist()
    raise NotCausalError(
        node, f"the mask lets token {row} attend to token {col}, which comes later; {_MASKS}"
    )


def hides_later(rw: Rewriter, hidden: Tensor | None) -> bool:
    """Whether it hides all tokens later than the query."""
    return all_later(rw, None if hidden is None else hidden < 0)


def all_later(rw: Rewriter, found: Tensor | None) -> bool:
    """Whether it is true for all tokens later than the query."""
    return rw.maximum == 1 or (found is not None and not bool((~found).triu(1).any()))


def _later(rw: Rewriter) -> Tensor:
    return torch.ones(rw.maximum, rw.maximum, dtype=torch.bool).triu(1)


def require_seen(rw: Rewriter, node: Node, scores: Node) -> None:
    """Low scores count nothing beside others. Where there are no others, they count. Where tokens
    say whether there are, the program finds out (fully_masked.py)."""
    value = rw.values[scores]
    _require_all_seen(node, value.hidden)
    if not value.masks and large_in(rw, scores) and is_own_of_tokens(rw, scores):
        mask = TokenMask(scores, scores, None)
        require_not_raised(rw, node, mask)
        value = replace(value, masks=(mask,))
    if value.masks:
        rw.masked_by_tokens.append((node, value))


def _require_all_seen(node: Node, hidden: Tensor | None) -> None:
    none = torch.zeros(0) if hidden is None else hidden.all(-1).nonzero()
    if none.numel():
        token = int(none[0, -1])
        raise NotCausalError(node, f"the mask lets token {token} attend to none, not itself")


def hidden_by_mask(rw: Rewriter, node: Node, mask: Node, rank: int) -> Tensor | None:
    """Of the fused operator's mask: false, or very low, along the last two of `rank` dims."""
    keep = rw.lengths.longest(mask)
    planes = _planes(rw, keep, rank, rank - 2, rank - 1)
    if planes is not None and keep.dtype == torch.bool:  # what attends to none by that is zero
        return _plane(rw, torch.where(planes, 0.0, _LOWEST))
    return _lowered(rw, node, planes, None)


def where_all(rw: Rewriter, node: Node, mask: Any, row: int, col: int, test: Any) -> Tensor | None:
    """Where `test` of a mask, or of a number, is true in all heads."""
    if rw.maximum**2 > MOST_ELEMENTS:
        return None
    planes = planes_of(rw, node, mask, row, col, test)
    return None if planes is None else planes.all(0).expand(rw.maximum, rw.maximum)


def _other(rw: Rewriter, node: Node) -> Any:
    """The first operand that is no scores."""
    return next((a for a in arguments(node)[:2] if not is_scores(rw, a)), None)


def low_number(rw: Rewriter, node: Node, value: Any) -> float | None:
    """What stands in the place of scores, if that takes them out; the highest of several."""
    if isinstance(value, Node):
        if rw.values[value].kind not in (Kind.FIXED, Kind.LENGTH):
            return None
        if not isinstance(value.meta["val"], Tensor):
            return None
        value = float(rw.lengths.longest(value).max())
    is_number = isinstance(value, (int, float)) and value <= LOW
    return max(float(value), _LOWEST) if is_number else None


def is_lowest(rw: Rewriter, node: Node, value: Any) -> bool:
    """Whether a number is as low as one can be in the type of the node's result."""
    number = low_number(rw, node, value)
    return number is not None and number <= max(_LOWEST, torch.finfo(node.meta["val"].dtype).min)


def _scaled(rw: Rewriter, node: Node, before: Tensor) -> Tensor | None:
    """Of scores that are multiplied or divided by positive numbers."""
    by = arguments(node)[1]
    if isinstance(by, Node):
        if rw.values[by].kind is not Kind.FIXED:
            return None
        by = rw.lengths.longest(by)
    elif not isinstance(by, (int, float)):
        return None
    by = torch.as_tensor(by, dtype=torch.float32)
    if not bool((by > 0).all()):
        return None
    divides = node.target in OVER
    level = (before / by.max() if divides else before * by.min()).clamp(min=_LOWEST)
    return level if bool(((level <= _STILL_LOW) | (level == 0)).all()) else None


def planes_of(
    rw: Rewriter, node: Node, mask: Any, row: int, col: int, test: Any = lambda m: m
) -> Tensor | None:
    """`test` of a mask, or of a number for all scores, as _planes gives it."""
    rank = node.meta["val"].dim()
    if isinstance(mask, (int, float)):
        number = torch.tensor(mask, dtype=node.meta["val"].dtype)
        return _planes(rw, test(number), rank, row, col)
    if not isinstance(mask, Node) or not isinstance(mask.meta["val"], Tensor):
        return None
    if rw.values[mask].kind not in (Kind.FIXED, Kind.LENGTH):
        return None
    return _planes(rw, test(rw.lengths.longest(mask)), rank, row, col)


def where_bounds(
    rw: Rewriter, mask: Node, test: Callable[[Tensor, Tensor], Tensor]
) -> Tensor | None:
    """Where `test` is true of the lowest and the highest number that a mask can be."""
    bounds = rw.values[mask].bounds
    if bounds is None:
        return None
    found = bounds.where(test).expand(rw.maximum, rw.maximum)
    if bool(found.any()):
        rw.flags |= bounds.assumes
    return found


def require_not_raised(rw: Rewriter, node: Node, mask: TokenMask) -> None:
    """Raise where numbers that tokens say may show later ones, which another mask hides."""
    value = rw.values[mask.given]
    small = where_bounds(
        rw, mask.given, lambda low, high: (high if mask.sign > 0 else -low) <= SMALL
    )
    if value.kind is Kind.ROWS:
        is_small = small is not None and bool(small.all())
    else:
        is_small = all_later(rw, small)
    if not is_small:
        raise NotCausalError(
            node, f"{mask.given.name} may raise later tokens as far as a mask lowers them"
        )


def where_holds(rw: Rewriter, condition: Node, holds: bool) -> Tensor | None:
    """Where a condition that tokens make is true, or is false, whatever they are."""
    if holds:
        return where_bounds(rw, condition, lambda low, high: (low > 0) | (high < 0))
    return where_bounds(rw, condition, lambda low, high: (low == 0) & (high == 0))


def _hidden_by_choice(
    rw: Rewriter, node: Node, choice: Choice, row: int, col: int
) -> Tensor | None:
    """Of scores in whose place a number stands where a condition holds, or does not; of a mask that
    tokens make of numbers."""
    mask, holds, value = choice.condition, choice.holds, choice.number
    before = rw.values[choice.rest].hidden if is_scores(rw, choice.rest) else None
    number = low_number(rw, node, value)
    if number is None:
        if isinstance(value, (int, float)) and value < -SMALL:
            return None  # it may be as low as what was hidden before
        stays = where_all(rw, node, mask, row, col, lambda m: m != holds)
        return None if before is None or stays is None else torch.where(stays, before, 0.0)
    if not is_scores(rw, choice.rest) and not _is_small(rw, choice.rest):
        return None
    require_far_below(rw, node, number)
    if is_of_tokens(rw, mask):
        surely = where_holds(rw, mask, holds)
        planes = None if surely is None else surely[None]
    else:
        planes = planes_of(rw, node, mask, row, col, lambda m: m == holds)
        _require_all_seen(node, planes)
    if planes is None:
        return None if before is None else before.clamp(min=number)
    return _plane(rw, torch.where(planes, number, torch.zeros(()) if before is None else before))


def _is_small(rw: Rewriter, given: Any) -> bool:
    """Whether numbers are so small that no score becomes low by adding them."""
    if isinstance(given, Node):
        if rw.values[given].kind not in (Kind.FIXED, Kind.LENGTH):
            return False
        given = rw.lengths.longest(given)
    return bool((torch.as_tensor(given).to(torch.float32).abs() <= SMALL).all())


def _hidden_by_sum(rw: Rewriter, node: Node, known: list[Any], row: int, col: int) -> Tensor | None:
    """Of scores plus or minus something else. Its low entries hide; high ones would show what was
    hidden before."""
    other, is_difference = _other(rw, node), node.target is aten.sub.Tensor
    if alpha(node) != 1:
        return None
    if len(known) == 2:
        return _hidden_beside(rw, node)
    if len(known) != 1 or (is_difference and arguments(node)[1] is not other):
        return None
    sign = -1 if is_difference else 1
    planes = planes_of(rw, node, other, row, col, lambda m: sign * m.to(torch.float32))
    return _lowered(rw, node, planes, known[0])


def _hidden_beside(rw: Rewriter, node: Node) -> Tensor | None:
    """Of masked scores plus or minus others."""
    a, b = arguments(node)[:2]
    terms = [(b, a, -1), (a, b, 1)] if node.target in SUBTRACT else [(a, b, 1), (b, a, 1)]
    for mask, scores, sign in terms:
        is_sum = node.target in ADD or scores is a
        before = rw.values[scores].hidden if is_sum else None
        if before is not None and _is_mask_of_tokens(rw, mask, sign):
            made = _level_of(rw, mask, sign)
            return before if made is None else torch.minimum(before, made)
    for mask, other, sign in terms:
        hidden = _level_of(rw, mask, sign)
        if hidden is not None and bool((hidden < 0).any()):
            most = -float(hidden[hidden < 0].max()) / _MARGIN
            return hidden if _is_unmasked(rw, other, most) else None
    return None


def _level_of(rw: Rewriter, mask: Node, sign: int) -> Tensor | None:
    """`hidden` of a term; of one that is subtracted if tokens make it themselves."""
    value = rw.values[mask]
    if sign > 0:
        return value.hidden
    return None if value.masks else _low_within(rw, value.bounds, sign)


def _is_mask_of_tokens(rw: Rewriter, node: Node, sign: int) -> bool:
    """Whether it is a mask that tokens make, of a low number and small ones or of any."""
    if sign < 0 and rw.values[node].masks:
        return False
    if is_own_of_tokens(rw, node) and large_in(rw, node) is not None:
        return True
    if sign < 0:
        return False
    while len(node.all_input_nodes) == 1 and (node.target in KEEP or not is_pointwise(node)):
        (node,) = node.all_input_nodes
    choice = choice_of(rw, node)
    if choice is None or is_scores(rw, choice.rest):
        return False
    return _is_small(rw, choice.rest)


def _is_unmasked(rw: Rewriter, scores: Node, most: float) -> bool:
    """Whether no mask, and no number above `most`, was among what scores were computed from."""
    for at in sources(rw, [scores], PAIRS, lambda _: True):
        value = rw.values[at]
        if not isinstance(value, Value) or value.hidden is not None:
            return False
        if any(bool((size > most).any()) for size in constant_sizes(rw, at)):
            return False
    return True


def _lowered(
    rw: Rewriter, node: Node, planes: Tensor | None, before: Tensor | None
) -> Tensor | None:
    """Of scores to which numbers are added: what is low beside the lowest that its query sees."""
    if planes is None:
        return before
    planes = planes.to(torch.float32)
    _require_all_seen(node, planes <= LOW)
    if bool((planes <= LOW).any()):
        require_far_below(rw, node, float(planes[planes <= LOW].max()))
    before = torch.zeros(()) if before is None else before
    is_seen = (planes > LOW) & (before == 0)
    lowest_seen = torch.where(is_seen, planes, 0.0).amin(-1, keepdim=True)
    level = (planes - lowest_seen).clamp(min=_LOWEST)
    stays = torch.where(level * _MARGIN <= -before, before, 0.0)
    hidden = torch.where(level <= LOW, torch.minimum(level, before), stays)
    return _plane(rw, torch.where(is_seen.any(-1, keepdim=True), hidden, 0.0))


def hidden_by_addend(rw: Rewriter, node: Node, row: int, col: int) -> Tensor | None:
    """Of a product of queries and keys to which a mask, its first operand, is added."""
    if node.kwargs.get("beta", 1) != 1:
        return None
    planes = planes_of(rw, node, arguments(node)[0], row, col, lambda m: m)
    return _lowered(rw, node, planes, None)


def _planes(rw: Rewriter, found: Tensor, rank: int, row: int, col: int) -> Tensor | None:
    """`found` as [heads and all else, row or 1, col or 1]; None where dims do not fit."""
    found = found.reshape([1] * (rank - found.dim()) + list(found.shape))
    n = rw.maximum
    if found.shape[row] not in (1, n) or found.shape[col] not in (1, n):
        return None
    others = [d for d in range(rank) if d not in (row, col)]
    return found.permute(*others, row, col).reshape(-1, found.shape[row], found.shape[col])


def _plane(rw: Rewriter, planes: Tensor) -> Tensor:
    """What holds in all heads."""
    return planes.amax(0).expand(rw.maximum, rw.maximum)
