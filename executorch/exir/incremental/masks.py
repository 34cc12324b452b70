"""Which scores a mask takes out, and whether that is all that look ahead."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import MOST_ELEMENTS, token_dims
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import Kind, arguments

aten = torch.ops.aten

# A score this low has weight zero beside any score that a model computes.
_LOW = -1e9

_KEEP = {
    aten.to.dtype, aten.to.dtype_layout, aten._to_copy.default, aten.type_as.default,
    aten.to.device, aten.dropout.default, aten.lift_fresh_copy.default,
}  # fmt: skip
_SCALE = {aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar}
_ADD = {aten.add.Tensor, aten.add_.Tensor}
_FILL = {aten.masked_fill.Scalar, aten.masked_fill.Tensor}
_WHERE = {aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf}


def hidden_after(rw: Rewriter, node: Node, row: int, col: int) -> Tensor | None:
    """`hidden` of an elementwise operator's result whose operands hold scores."""
    known = [rw.values[n].hidden for n in node.all_input_nodes if rw.values[n].kind is Kind.SCORES]
    before = known[0] if len(known) == 1 else None
    found = None
    if node.target in _ADD and len(known) == 1 and _alpha(node) == 1:
        found = _low_entries(rw, node, _other(node, known, rw), row, col)
        return _either(before, found)
    if node.target in _FILL and rw.values[arguments(node)[0]].kind is Kind.SCORES:
        if _is_low(rw, arguments(node)[2]):
            found = _entries(rw, node, arguments(node)[1], row, col, lambda m: m)
        return _either(before, found)
    if node.target in _WHERE:
        return _hidden_by_where(rw, node, before, row, col)
    if node.target in _KEEP:
        return before
    if node.target in _SCALE and _is_positive(rw, arguments(node)[1]):
        return before
    if node.target is aten.maximum.default:
        other = _other(node, known, rw)
        return before if _is_low(rw, other) else None
    return None


def require_causal(rw: Rewriter, node: Node, hidden: Tensor | None) -> None:
    if rw.maximum**2 > MOST_ELEMENTS:
        raise NotCausalError(node, f"{rw.maximum} tokens are too many to look at each pair of them")
    ahead = torch.ones(rw.maximum, rw.maximum, dtype=torch.bool).triu(1)
    if rw.maximum == 1 or (hidden is not None and bool(hidden[ahead].all())):
        return
    if hidden is None:
        raise NotCausalError(node, "no mask keeps a token from attending to later ones")
    row, col = (ahead & ~hidden).nonzero()[0].tolist()
    raise NotCausalError(
        node, f"the mask lets token {row} attend to token {col}, which comes later"
    )


def hidden_by_mask(rw: Rewriter, node: Node, mask: Node, rank: int) -> Tensor | None:
    """Of the fused operator's mask: false, or very low, along the last two of `rank` dims."""
    keep = rw.lengths.longest(mask)
    low = ~keep if keep.dtype == torch.bool else keep <= _LOW
    return _plane(rw, mask, low, rank, rank - 2, rank - 1)


def _alpha(node: Node) -> Any:
    return node.kwargs.get("alpha", 1)


def _other(node: Node, known: list[Any], rw: Rewriter) -> Any:
    return next(
        (
            a
            for a in arguments(node)[:2]
            if not (isinstance(a, Node) and rw.values[a].kind is Kind.SCORES)
        ),
        None,
    )


def _either(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a | b


def _is_low(rw: Rewriter, value: Any) -> bool:
    if isinstance(value, Node):
        if rw.values[value].kind not in (Kind.FIXED, Kind.LENGTH):
            return False
        if not isinstance(value.meta["val"], Tensor):
            return False
        if token_dims(value.meta["val"], rw.symbol):
            return False
        return bool((rw.lengths.longest(value) <= _LOW).all())
    return isinstance(value, (int, float)) and value <= _LOW


def _is_positive(rw: Rewriter, value: Any) -> bool:
    if isinstance(value, Node):
        return rw.values[value].kind is Kind.FIXED and bool((rw.lengths.longest(value) > 0).all())
    return isinstance(value, (int, float)) and value > 0


def _entries(rw: Rewriter, node: Node, mask: Any, row: int, col: int, test: Any) -> Tensor | None:
    if not isinstance(mask, Node) or rw.values[mask].kind not in (Kind.FIXED, Kind.LENGTH):
        return None
    rank = node.meta["val"].dim()
    return _plane(rw, mask, test(rw.lengths.longest(mask)), rank, row, col)


def _low_entries(rw: Rewriter, node: Node, mask: Any, row: int, col: int) -> Tensor | None:
    return _entries(rw, node, mask, row, col, lambda m: m <= _LOW)


def _plane(
    rw: Rewriter, mask: Node, hidden: Tensor, rank: int, row: int, col: int
) -> Tensor | None:
    """True where all of `hidden` at (row, col) is true; None where dims do not fit."""
    hidden = hidden.reshape([1] * (rank - hidden.dim()) + list(hidden.shape))
    n = rw.maximum
    if hidden.shape[row] not in (1, n) or hidden.shape[col] not in (1, n):
        return None
    others = [d for d in range(rank) if d not in (row, col)]
    plane = hidden.permute(*others, row, col).reshape(-1, hidden.shape[row], hidden.shape[col])
    return plane.all(0).expand(n, n)


def _hidden_by_where(
    rw: Rewriter, node: Node, before: Tensor | None, row: int, col: int
) -> Tensor | None:
    condition, yes, no = arguments(node)
    is_scores = [isinstance(a, Node) and rw.values[a].kind is Kind.SCORES for a in (yes, no)]
    if is_scores == [True, False] and _is_low(rw, no):
        return _either(before, _entries(rw, node, condition, row, col, lambda m: ~m))
    if is_scores == [False, True] and _is_low(rw, yes):
        return _either(before, _entries(rw, node, condition, row, col, lambda m: m))
    return None
