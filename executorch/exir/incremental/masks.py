"""Which scores a mask takes out, and whether that is all that look ahead."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import MOST_ELEMENTS
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import PAIRS, Kind, arguments

aten = torch.ops.aten

# A score this low has weight zero beside any score that a model computes. Half precision has no
# number so low: there it is the lowest.
_LOW = -1e9


_MASKS = "a mask is false, or -1e9 or less, or the lowest number of its type"

# What is added to low scores is less than they are by this factor, and what they are divided by is
# less than it, so that they stay low.
_MARGIN = 100
# What is added to scores and is no larger does not show what was hidden.
HIGHEST = -_LOW / _MARGIN


def _lowest(dtype: torch.dtype) -> float:
    """What is as low as a mask can be in a type of floats."""
    return max(_LOW, torch.finfo(dtype).min) if dtype.is_floating_point else _LOW


KEEP = {
    aten.to.dtype, aten.to.dtype_layout, aten._to_copy.default,
    aten.to.device, aten.dropout.default, aten.lift_fresh_copy.default,
}  # fmt: skip
_SCALE = {aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar}
ADD = {aten.add.Tensor, aten.add_.Tensor}
SUBTRACT = {aten.sub.Tensor}
FILL = {aten.masked_fill.Scalar, aten.masked_fill.Tensor}
_MAXIMUM = {aten.maximum.default, aten.max.other}
WHERE = {aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf}


def hidden_after(rw: Rewriter, node: Node, row: int, col: int) -> Tensor | None:
    """`hidden` of an elementwise operator's result whose operands hold scores."""
    known = [rw.values[n].hidden for n in node.all_input_nodes if _is_scores(rw, n)]
    before = known[0] if len(known) == 1 else None
    if node.target in ADD | SUBTRACT:
        return _hidden_by_sum(rw, node, known, row, col)
    if node.target in FILL and _is_scores(rw, arguments(node)[0]):
        mask, value = arguments(node)[1:3]
        if is_low(rw, node, value):
            _require_known(rw, node, mask)
            return _either(before, _hidden(rw, node, mask, row, col, lambda m: m))
        stays = where_all(rw, node, mask, row, col, lambda m: ~m)
        return None if before is None or stays is None else before & stays
    if node.target in WHERE:
        return _hidden_by_where(rw, node, before, row, col)
    if node.target in KEEP:
        return before if node.meta["val"].dtype.is_floating_point else None
    if node.target in _SCALE and _keeps_low(rw, node):
        return before
    if node.target in _MAXIMUM:
        other = _other(node, known, rw)
        return before if is_low(rw, node, other) else None
    return None


def require_causal(rw: Rewriter, node: Node, hidden: Tensor | None) -> None:
    if rw.maximum**2 > MOST_ELEMENTS:
        raise NotCausalError(node, f"{rw.maximum} tokens are too many to look at each pair of them")
    if hides_later(rw, hidden):
        return
    if hidden is None:
        raise NotCausalError(node, f"no mask keeps a token from attending to later ones; {_MASKS}")
    row, col = (_later(rw) & ~hidden).nonzero()[0].tolist()
    raise NotCausalError(
        node, f"the mask lets token {row} attend to token {col}, which comes later; {_MASKS}"
    )


def hides_later(rw: Rewriter, hidden: Tensor | None) -> bool:
    """Whether it is true for all tokens later than the query."""
    return rw.maximum == 1 or (hidden is not None and bool(hidden[_later(rw)].all()))


def _later(rw: Rewriter) -> Tensor:
    return torch.ones(rw.maximum, rw.maximum, dtype=torch.bool).triu(1)


def require_seen(node: Node, hidden: Tensor | None) -> None:
    """Low scores count nothing beside others. Where there are no others, they count."""
    none = torch.zeros(0) if hidden is None else hidden.all(-1).nonzero()
    if none.numel():
        token = int(none[0, -1])
        raise NotCausalError(node, f"the mask lets token {token} attend to none, not itself")


def hidden_by_mask(rw: Rewriter, node: Node, mask: Node, rank: int) -> Tensor | None:
    """Of the fused operator's mask: false, or very low, along the last two of `rank` dims."""
    keep = rw.lengths.longest(mask)
    if keep.dtype == torch.bool:  # what attends to none by that is zero
        return _plane(rw, _planes(rw, ~keep, rank, rank - 2, rank - 1))
    planes = _planes(rw, keep <= _lowest(keep.dtype), rank, rank - 2, rank - 1)
    require_seen(node, planes)
    return _plane(rw, planes)


def where_all(rw: Rewriter, node: Node, mask: Any, row: int, col: int, test: Any) -> Tensor | None:
    """Where `test` of a mask, or of a number, is true in all heads."""
    if rw.maximum**2 > MOST_ELEMENTS:
        return None
    return _plane(rw, _entries(rw, node, mask, row, col, test))


def _is_scores(rw: Rewriter, given: Any) -> bool:
    return isinstance(given, Node) and rw._is(given, *PAIRS)


def _alpha(node: Node) -> Any:
    return node.kwargs.get("alpha", 1)


def _other(node: Node, known: list[Any], rw: Rewriter) -> Any:
    return next(
        (a for a in arguments(node)[:2] if not _is_scores(rw, a)),
        None,
    )


def _either(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a | b


def is_low(rw: Rewriter, node: Node, value: Any) -> bool:
    """Whether a number takes a score out, in the type of the node's result."""
    low = _lowest(node.meta["val"].dtype)
    if isinstance(value, Node):
        if rw.values[value].kind not in (Kind.FIXED, Kind.LENGTH):
            return False
        if not isinstance(value.meta["val"], Tensor):
            return False
        return bool((rw.lengths.longest(value) <= low).all())
    return isinstance(value, (int, float)) and value <= low


def _keeps_low(rw: Rewriter, node: Node) -> bool:
    """Whether scores are multiplied or divided by positive numbers that leave low ones low."""
    by = arguments(node)[1]
    if isinstance(by, Node):
        if rw.values[by].kind is not Kind.FIXED:
            return False
        by = rw.lengths.longest(by)
    elif not isinstance(by, (int, float)):
        return False
    divides = node.target in (aten.div.Tensor, aten.div.Scalar)
    by = torch.as_tensor(by)
    is_safe = (by > 0) & (by <= _MARGIN) if divides else by >= 1 / _MARGIN
    return bool(is_safe.all())


def _entries(rw: Rewriter, node: Node, mask: Any, row: int, col: int, test: Any) -> Tensor | None:
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


def _hidden(rw: Rewriter, node: Node, mask: Any, row: int, col: int, test: Any) -> Tensor | None:
    """Where `test` of the mask is true, and scores become low; some of each token's must not."""
    planes = _entries(rw, node, mask, row, col, test)
    require_seen(node, planes)
    return _plane(rw, planes)


def _low_entries(
    rw: Rewriter, node: Node, mask: Any, row: int, col: int, sign: int = 1
) -> Tensor | None:
    """Where sign * mask is so low that it takes out the score that it is added to."""
    return _hidden(rw, node, mask, row, col, lambda m: sign * m <= _lowest(m.dtype))


def _hidden_by_sum(rw: Rewriter, node: Node, known: list[Any], row: int, col: int) -> Tensor | None:
    """Of scores plus or minus something else. Its low entries hide; high ones would show what was
    hidden before."""
    other, is_difference = _other(node, known, rw), node.target is aten.sub.Tensor
    if len(known) != 1 or _alpha(node) != 1 or (is_difference and arguments(node)[1] is not other):
        return None
    before, sign = known[0], -1 if is_difference else 1
    highest = -_lowest(node.meta["val"].dtype) / _MARGIN
    stays = where_all(rw, node, other, row, col, lambda m: sign * m <= highest)
    if before is not None and stays is not None:
        before = before & stays
    return _either(before, _low_entries(rw, node, other, row, col, sign))


def hidden_by_addend(rw: Rewriter, node: Node, row: int, col: int) -> Tensor | None:
    """Of a product of queries and keys to which a mask, its first operand, is added."""
    if node.kwargs.get("beta", 1) != 1:
        return None
    return _low_entries(rw, node, arguments(node)[0], row, col)


def _planes(rw: Rewriter, found: Tensor, rank: int, row: int, col: int) -> Tensor | None:
    """`found` as [heads and all else, row or 1, col or 1]; None where dims do not fit."""
    found = found.reshape([1] * (rank - found.dim()) + list(found.shape))
    n = rw.maximum
    if found.shape[row] not in (1, n) or found.shape[col] not in (1, n):
        return None
    others = [d for d in range(rank) if d not in (row, col)]
    return found.permute(*others, row, col).reshape(-1, found.shape[row], found.shape[col])


def _plane(rw: Rewriter, planes: Tensor | None) -> Tensor | None:
    """True where all are true."""
    return None if planes is None else planes.all(0).expand(rw.maximum, rw.maximum)


def _hidden_by_where(
    rw: Rewriter, node: Node, before: Tensor | None, row: int, col: int
) -> Tensor | None:
    condition, yes, no = arguments(node)
    is_scores = [_is_scores(rw, a) for a in (yes, no)]
    if sum(is_scores) != 1 or not is_low(rw, node, no if is_scores[0] else yes):
        return None
    _require_known(rw, node, condition)
    hides_where = not is_scores[0]
    return _either(before, _hidden(rw, node, condition, row, col, lambda m: m == hides_where))


def _require_known(rw: Rewriter, node: Node, condition: Node) -> None:
    """Where tokens or scores say what is taken out, that may be all that a token attends to: then
    low scores, those of later tokens among them, are as high as each other."""
    if rw.values[condition].kind not in (Kind.FIXED, Kind.LENGTH):
        raise NotCausalError(
            node, f"{condition.name}, which depends on tokens, says which scores are taken out"
        )
