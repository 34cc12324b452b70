"""Which scores a mask takes out, and whether that is all that look ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import MOST_ELEMENTS
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import PAIRS, Kind, Known, Value, arguments, look_up

aten = torch.ops.aten

# What is this far below the others has weight zero beside any score that a model computes: e to its
# power is zero in all types.
_LOW = -1e4
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

KEEP = {
    aten.to.dtype, aten.to.dtype_layout, aten._to_copy.default,
    aten.to.device, aten.dropout.default, aten.lift_fresh_copy.default,
}  # fmt: skip
_JOINS = {aten.cat.default, aten.stack.default}
_LOOKUPS = {aten.embedding.default, aten.index.Tensor, aten.index_select.default}
TIMES = {aten.mul.Tensor, aten.mul.Scalar}
SCALE = TIMES | {aten.div.Tensor, aten.div.Scalar}
_PICKS = {aten.index.Tensor}
ADD = {aten.add.Tensor, aten.add_.Tensor}
SUBTRACT = {aten.sub.Tensor}
FILL = {aten.masked_fill.Scalar, aten.masked_fill.Tensor}
AND = {aten.logical_and.default, aten.bitwise_and.Tensor}
OR = {aten.logical_or.default, aten.bitwise_or.Tensor}
NOT = {aten.logical_not.default, aten.bitwise_not.default}
EQUAL = {aten.eq.Scalar, aten.eq.Tensor}
UNEQUAL = {aten.ne.Scalar, aten.ne.Tensor}
_MAXIMUM = {aten.maximum.default, aten.max.other}
WHERE = {
    aten.where.self, aten.where.Scalar, aten.where.ScalarOther, aten.where.ScalarSelf,
}  # fmt: skip


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
    rw: Rewriter, node: Node, row: int, col: int, known: Known | None
) -> Tensor | None:
    """`hidden` of an elementwise operator's result, of which some entries are known."""
    if not node.meta["val"].dtype.is_floating_point:
        return None
    is_own = is_own_of_tokens(rw, *node.all_input_nodes)
    hidden = _hidden_of_operands(rw, node, row, col, is_own)
    if not is_own or known is None or not bool((known.numbers <= _LOW).any()):
        return hidden
    levels = torch.where(known.numbers <= _LOW, known.numbers, 0.0).clamp(min=_LOWEST)
    low = look_up(levels.to(torch.float32), [known.places]).expand(rw.maximum, rw.maximum)
    return low if hidden is None else torch.minimum(hidden, low)


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
    if is_times_number and abs(given[1]) >= -_LOW and not is_own:
        raise NotCausalError(node, "scores times a number as large as a mask's")
    if target in SCALE and before is not None:
        return _scaled(rw, node, before)
    if before is not None and is_maximum_with_low(rw, node):
        return before.clamp(min=low_number(rw, node, _other(rw, node)))
    return None


def is_maximum_with_low(rw: Rewriter, node: Node) -> bool:
    """Whether it takes the place of lower scores alone."""
    return node.target in _MAXIMUM and low_number(rw, node, _other(rw, node)) is not None


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


def require_seen(rw: Rewriter, node: Node, value: Value) -> None:
    """Low scores count nothing beside others. Where there are no others, they count. Where tokens
    say whether there are, the program finds out (token_masks.py)."""
    _require_all_seen(node, value.hidden)
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


def is_scores(rw: Rewriter, given: Any) -> bool:
    """Whether it is of queries and keys, or of either and meets the other."""
    return isinstance(given, Node) and rw._is(given, *PAIRS, Kind.ROWS)


def alpha(node: Node) -> Any:
    return node.kwargs.get("alpha", 1)


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
    is_number = isinstance(value, (int, float)) and value <= _LOW
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
    divides = node.target in (aten.div.Tensor, aten.div.Scalar)
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


def where_known(rw: Rewriter, mask: Node, test: Callable[[Tensor], Tensor]) -> Tensor | None:
    """Where `test` is true of what a mask is whatever the tokens are."""
    known = rw.values[mask].known
    return None if known is None else known.where(test).expand(rw.maximum, rw.maximum)


def where_holds(rw: Rewriter, condition: Node, holds: bool) -> Tensor | None:
    """Where a condition that tokens make is true, or is false, whatever they are."""
    return where_known(rw, condition, lambda n: n.abs() > 0 if holds else n == 0)


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
    _require_far_below(rw, node, number)
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
    masked, other = arguments(node)[:2]
    for mask, scores in ((masked, other), (other, masked)):
        before, made = rw.values[scores].hidden, rw.values[mask].hidden
        if node.target in ADD and before is not None and _is_mask_of_tokens(rw, mask):
            return before if made is None else torch.minimum(before, made)
    if node.target in ADD and rw.values[masked].hidden is None:
        masked, other = other, masked
    hidden = rw.values[masked].hidden
    if hidden is None or not bool((hidden < 0).any()):
        return None
    most = -float(hidden[hidden < 0].max()) / _MARGIN
    return hidden if _is_unmasked(rw, other, most) else None


def _is_mask_of_tokens(rw: Rewriter, node: Node) -> bool:
    """Whether it is a mask that tokens make, of a low number and small ones or of any."""
    if is_own_of_tokens(rw, node) and large_in(rw, node) is not None:
        return True
    while len(node.all_input_nodes) == 1 and (node.target in KEEP or not _is_pointwise(node)):
        (node,) = node.all_input_nodes
    choice = choice_of(rw, node)
    if choice is None or is_scores(rw, choice.rest):
        return False
    return _is_small(rw, choice.rest)


def _is_unmasked(rw: Rewriter, scores: Node, most: float) -> bool:
    """Whether no mask, and no number above `most`, was among what scores were computed from."""
    for at in _sources(rw, [scores], PAIRS, lambda _: True):
        value = rw.values[at]
        if not isinstance(value, Value) or value.hidden is not None:
            return False
        if any(bool((size > most).any()) for size in _constant_sizes(rw, at)):
            return False
    return True


def require_no_mask(rw: Rewriter, node: Node, operand: Node) -> None:
    """Raise where numbers as large as a mask's are among what tokens say of themselves: a token of
    which all that it may see is as low would attend to later ones."""
    large = large_in(rw, operand)
    if large is not None:
        raise NotCausalError(node, f"{large.name} is a mask that tokens make themselves")


def large_in(rw: Rewriter, operand: Node) -> Node | None:
    """What makes, with a number as large as a mask's, the operand of what tokens say."""
    for at in _sources(rw, [operand], (Kind.ROWS, *PAIRS), _is_followed):
        sizes = _constant_sizes(rw, at) if _is_pointwise(at) else []
        if at.target in _LOOKUPS:  # the numbers among its arguments are no entries
            sizes = _constant_sizes(rw, at)[1:]
        if any(bool((size >= -_LOW).any()) for size in sizes):
            return at
    return None


def is_own_of_tokens(rw: Rewriter, *nodes: Node) -> bool:
    """Whether they are made of what tokens say of themselves, such as which are padding, and not of
    what a model computes of them."""
    for at in _sources(rw, [*nodes], (Kind.ROWS, *PAIRS), lambda _: True):
        tensors = [n for n in at.all_input_nodes if isinstance(n.meta.get("val"), Tensor)]
        is_elementwise = torch.Tag.pointwise in getattr(at.target, "tags", ())
        if len(tensors) > 1 and not is_elementwise and at.target not in WHERE | FILL | _PICKS:
            return False
    return True


def is_below_infinity(rw: Rewriter, operand: Node) -> bool:
    """Whether no constant that tokens choose or compute with makes an infinity above zero, nor a
    NaN, which would show what minus infinity hid."""
    is_infinite = is_computed = False
    for at in _sources(rw, [operand], (Kind.ROWS, *PAIRS), _is_followed):
        if not _is_pointwise(at) or not at.meta["val"].dtype.is_floating_point:
            continue
        is_computed |= at.target not in FILL | WHERE | KEEP
        numbers = [torch.tensor(float(a)) for a in arguments(at) if isinstance(a, float)]
        tables = [rw.lengths.longest(n) for n in at.all_input_nodes if _is_float_table(rw, n)]
        for found in (*numbers, *tables):
            if bool((found.isnan() | (found == torch.inf)).any()):
                return False
            is_infinite |= bool(found.isinf().any())
    return not (is_infinite and is_computed)


def _is_float_table(rw: Rewriter, node: Node) -> bool:
    fake = node.meta.get("val")
    is_float = isinstance(fake, Tensor) and fake.dtype.is_floating_point
    return is_float and rw._is(node, Kind.FIXED, Kind.LENGTH)


def _is_followed(at: Node) -> bool:
    """Whether what an operand is may be in what the node is computed to be."""
    tensors = [n for n in at.all_input_nodes if not isinstance(n.meta.get("val"), SymInt)]
    return _is_pointwise(at) or len(tensors) == 1 or at.target in _JOINS


def _require_far_below(rw: Rewriter, node: Node, number: float) -> None:
    """Raise where scores that are seen may be as low as `number`, which is to hide others, because
    they were computed with numbers that are no mask but a tenth of it."""
    for at in _sources(rw, node.all_input_nodes, PAIRS, lambda _: True):
        sizes = _constant_sizes(rw, at) if _is_pointwise(at) else []
        if any(bool(((size > -number / 10) & (size < -_LOW)).any()) for size in sizes):
            raise NotCausalError(node, f"{number:g} may hide nothing behind {at.name}")


def _sources(
    rw: Rewriter, start: list[Node], kinds: tuple[Kind, ...], goes_on: Callable[[Node], bool]
) -> Iterator[Node]:
    """`start` and what it was computed from, each node once, as far as nodes are of these kinds;
    operands of a node are looked at only where `goes_on` is true of it."""
    pending, found = list(start), set()
    while pending:
        at = pending.pop()
        if at in found or not rw._is(at, *kinds):
            continue
        found.add(at)
        yield at
        if goes_on(at):
            pending += at.all_input_nodes


def _is_pointwise(node: Node) -> bool:
    fake = node.meta.get("val")
    if not isinstance(fake, Tensor) or fake.dtype == torch.bool:
        return False
    is_tagged = torch.Tag.pointwise in getattr(node.target, "tags", ())
    return is_tagged or node.target in KEEP | WHERE | FILL


def _constant_sizes(rw: Rewriter, node: Node) -> list[Tensor]:
    """The absolute values of numbers and tables that are operands of the node."""
    numbers = [float(a) for a in arguments(node) if isinstance(a, (int, float))]
    tables = [n for n in node.all_input_nodes if rw._is(n, Kind.FIXED, Kind.LENGTH)]
    longest = [rw.lengths.longest(n) for n in tables if isinstance(n.meta["val"], Tensor)]
    return [v.to(torch.float32).abs() for v in (torch.tensor(numbers), *longest)]


def _lowered(
    rw: Rewriter, node: Node, planes: Tensor | None, before: Tensor | None
) -> Tensor | None:
    """Of scores to which numbers are added: what is low beside the lowest that its query sees."""
    if planes is None:
        return before
    planes = planes.to(torch.float32)
    _require_all_seen(node, planes <= _LOW)
    if bool((planes <= _LOW).any()):
        _require_far_below(rw, node, float(planes[planes <= _LOW].max()))
    before = torch.zeros(()) if before is None else before
    is_seen = (planes > _LOW) & (before == 0)
    lowest_seen = torch.where(is_seen, planes, 0.0).amin(-1, keepdim=True)
    level = (planes - lowest_seen).clamp(min=_LOWEST)
    stays = torch.where(level * _MARGIN <= -before, before, 0.0)
    hidden = torch.where(level <= _LOW, torch.minimum(level, before), stays)
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
