"""Between which numbers entries of masks are, whatever the tokens are.

A mask that tokens make of their own, such as of padding, hides later tokens all the same:
`1 - causal * attention_mask` is one there. Operators are evaluated on the few ranges that there
are, not on each entry.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.lengths import MOST_ELEMENTS
from executorch.exir.incremental.masks import planes_of
from executorch.exir.incremental.operators import (
    ADD,
    AND,
    EQUAL,
    FILL,
    KEEP,
    NOT,
    OR,
    OVER,
    SUBTRACT,
    TIMES,
    UNEQUAL,
    WHERE,
    alpha,
)
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.sources import JOINS, LOOKUPS, is_below_infinity, is_scores
from executorch.exir.incremental.values import (
    Bounds,
    Kind,
    Value,
    arguments,
    bound_arguments,
    look_up,
)

aten = torch.ops.aten

Range = tuple[Tensor, Tensor]  # the lowest and the highest number, float64

# Of each operand they never fall, or never rise: the results of the ends are ends.
_MONOTONE: dict[Any, Callable[..., Tensor]] = {
    **dict.fromkeys(KEEP, lambda x: x),
    **dict.fromkeys(ADD, torch.add),
    **dict.fromkeys(SUBTRACT, torch.sub),
    **dict.fromkeys((aten.rsub.Scalar, aten.rsub.Tensor), torch.rsub),
    **dict.fromkeys(TIMES, torch.mul),
    **dict.fromkeys((aten.minimum.default, aten.min.other, aten.clamp_max.default), torch.minimum),
    **dict.fromkeys((aten.maximum.default, aten.max.other, aten.clamp_min.default), torch.maximum),
    **dict.fromkeys((aten.gt.Scalar, aten.gt.Tensor), torch.gt),
    **dict.fromkeys((aten.ge.Scalar, aten.ge.Tensor), torch.ge),
    **dict.fromkeys((aten.lt.Scalar, aten.lt.Tensor), torch.lt),
    **dict.fromkeys((aten.le.Scalar, aten.le.Tensor), torch.le),
}
_ONE_OPERAND = {
    aten.relu.default: torch.relu, aten.sigmoid.default: torch.sigmoid,
    aten.tanh.default: torch.tanh, aten.exp.default: torch.exp, aten.log.default: torch.log,
    aten.log2.default: torch.log2, aten.log10.default: torch.log10, aten.neg.default: torch.neg,
}  # fmt: skip
# Of anything.
_BOUNDED = {aten.relu.default, aten.sigmoid.default, aten.tanh.default, aten.exp.default}
_CLAMP = aten.clamp.default
_BITWISE = {op for op in AND | OR | NOT if "bitwise" in str(op)}

# Elements of a table that is no parameter of a layer.
_SMALL = 2**16
# Numbers of a table that are told apart.
_MOST_NUMBERS = 16
# Larger integers are rounded here.
_LARGEST_INTEGER = 2**53

_ALL = torch.zeros(1, 1, dtype=torch.uint8)


def uniform(low: float, high: float) -> Bounds:
    """The same for all entries."""
    ends = torch.tensor([[low], [high]], dtype=torch.float64)
    return Bounds(_ALL, ends[0], ends[1])


_UNKNOWN = uniform(-math.inf, math.inf)
_TRUTH = uniform(0, 1)


def bounds_of_flags(given: Node) -> Bounds | None:
    """Of integers that a call is told of each token: such as a mask has, until one is another."""
    dtype = given.meta["val"].dtype
    is_integer = not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool
    return replace(_TRUTH, assumes=frozenset([given])) if is_integer else None


def bounds_after(rw: Rewriter, node: Node, row: int, col: int | None) -> Bounds | None:
    """`bounds` of an elementwise operator's result; without `col` those of rows."""
    dtype, target = node.meta["val"].dtype, node.target
    anything = _TRUTH if dtype == torch.bool else None
    if rw.maximum**2 > MOST_ELEMENTS or dtype.is_complex:
        return anything
    count = _count(target)
    is_new = all(_bounds_of_tokens(rw, n) is _UNKNOWN for n in node.all_input_nodes)
    if not count or (col is None and is_new and target not in _BOUNDED):
        return anything
    operands = [_bounds_of(rw, node, a, row, col) for a in arguments(node)[:count]]
    lows = torch.meshgrid(*(b.low for b in operands), indexing="ij")
    highs = torch.meshgrid(*(b.high for b in operands), indexing="ij")
    found = _range(rw, node, list(zip(lows, highs, strict=True)))
    if found is None:
        return anything
    low, high = _stored(found, dtype)
    joined = _joined(operands, low, high)
    is_any_truth = joined is not None and bool(((joined.low == 0) & (joined.high == 1)).all())
    return anything if joined is None or (dtype == torch.bool and is_any_truth) else joined


def bounded(rw: Rewriter, node: Node, value: Any) -> Any:
    """`value` with the range of what a small table or joined parts have."""
    is_rows = isinstance(value, Value) and value.kind is Kind.ROWS and value.bounds is None
    if not is_rows or node.target not in LOOKUPS | JOINS:
        return value
    first = arguments(node)[0]
    is_join = node.target in JOINS
    if not is_join and (not rw._is(first, Kind.FIXED) or first.meta["val"].numel() > _SMALL):
        return value
    found = [_bounds_of(rw, node, p, 0, None) for p in (first if is_join else [first])]
    low, high = min(float(b.low.min()) for b in found), max(float(b.high.max()) for b in found)
    assumes = frozenset[Node]().union(*(b.assumes for b in found))
    is_known = low > -math.inf or high < math.inf
    return (
        replace(value, bounds=replace(uniform(low, high), assumes=assumes)) if is_known else value
    )


def zero_later(rw: Rewriter) -> Bounds | None:
    if rw.maximum**2 > MOST_ELEMENTS:
        return None
    places = torch.ones(rw.maximum, rw.maximum, dtype=torch.uint8).triu(1)
    ends = torch.tensor([math.inf, 0.0], dtype=torch.float64)
    return Bounds(places, -ends, ends)


def _count(target: Any) -> int:
    """How many operands decide about the result."""
    if target in WHERE | FILL:
        return 3
    if target in KEEP | NOT or target in _ONE_OPERAND or target is _CLAMP:
        return 1
    return 2 if target in AND | OR | EQUAL | UNEQUAL | OVER or target in _MONOTONE else 0


def _bounds_of_tokens(rw: Rewriter, given: Node) -> Bounds:
    """Of what tokens say."""
    if not is_scores(rw, given):
        return _UNKNOWN
    value = rw.values[given]
    found = value.bounds
    if found is None and value.kind is Kind.WEIGHTS:
        found = zero_later(rw)
    if found is None and given.meta["val"].dtype == torch.bool:
        found = _TRUTH
    return found or _UNKNOWN


def _bounds_of(rw: Rewriter, node: Node, given: Any, row: int, col: int | None) -> Bounds:
    """Of an operand, or of a number for all entries."""
    if isinstance(given, (int, float)):
        return uniform(given, given)
    if not isinstance(given, Node) or is_scores(rw, given):
        return _bounds_of_tokens(rw, given) if isinstance(given, Node) else _UNKNOWN
    is_table = rw._is(given, Kind.FIXED, Kind.LENGTH) and isinstance(given.meta["val"], Tensor)
    if not is_table or given in rw.lengths.shifted or given.meta["val"].dtype.is_complex:
        return _UNKNOWN
    table = rw.lengths.longest(given)
    if table.numel() == 0 or bool(table.isnan().any()):
        return _UNKNOWN
    ends = (float(table.min()), float(table.max()))
    planes = None if col is None else planes_of(rw, node, given, row, col)
    return uniform(*ends) if planes is None else _of_planes(planes, *ends)


def _of_planes(planes: Tensor, low: float, high: float) -> Bounds:
    """Of a table [heads, rows, cols] whose entries are from `low` to `high`."""
    at_ends = (planes[:, [0, -1]].flatten(), planes[:, :, [0, -1]].flatten())
    numbers = torch.cat(at_ends).unique()[:_MOST_NUMBERS]
    places = torch.zeros(planes.shape[1:], dtype=torch.uint8)
    for i, number in enumerate(numbers, 1):
        places[(planes == number).all(0)] = i
    lows, highs = (
        torch.cat([torch.tensor([end], dtype=torch.float64), numbers.to(torch.float64)])
        for end in (low, high)
    )
    return Bounds(places, lows, highs)


def _range(rw: Rewriter, node: Node, given: list[Range]) -> Range | None:
    """Of the result, from those of the operands."""
    target = node.target
    if target in FILL:
        rest, condition, number = given
        return _of_choice(condition, number, rest)
    if target in WHERE:
        return _of_choice(*given)
    if target in AND | OR | NOT:
        return _of_logic(node, given)
    if target in EQUAL | UNEQUAL:
        return _of_equality(target, given)
    if target in OVER:
        (low, high), (by, same) = given
        if not bool(((by == same) & (by != 0)).all()):
            return None
        return _ends([low / by, high / by])
    if target is _CLAMP:
        limits = [bound_arguments(node)[name] for name in ("min", "max")]
        if any(isinstance(limit, Node) for limit in limits):
            return None
        return _ends([torch.clamp(x, *limits) for x in given[0]])
    if target in _ONE_OPERAND:
        return _ends([_ONE_OPERAND[target](x) for x in given[0]])
    results = []
    for numbers in itertools.product(*given):
        found = _MONOTONE[target](*numbers, **_scaled_by(node)).to(torch.float64)
        if target in TIMES:  # nothing of an infinity that is not there
            found = found.masked_fill((numbers[0] == 0) | (numbers[1] == 0), 0.0)
        results.append(found)
    low, high = _ends(results)
    if target in ADD and alpha(node) == 1 and _are_below_infinity(rw, node):
        is_lowest = torch.stack([high == -math.inf for _, high in given]).any(0)
        low, high = (x.masked_fill(is_lowest, -math.inf) for x in (low, high))
    return low, high


def _scaled_by(node: Node) -> dict[str, Any]:
    factor = bound_arguments(node).get("alpha", 1)
    return {} if factor == 1 else {"alpha": factor}


def _ends(results: list[Tensor]) -> Range:
    """NaN is what infinities make: anything."""
    low = torch.stack([r.nan_to_num(-math.inf, math.inf, -math.inf) for r in results]).amin(0)
    high = torch.stack([r.nan_to_num(math.inf, math.inf, -math.inf) for r in results]).amax(0)
    return low, high


def _truth(given: Range) -> Range:
    """Of whether it is not 0: from 0 to 1."""
    low, high = given
    return ((low > 0) | (high < 0)).double(), ((low != 0) | (high != 0)).double()


def _of_choice(condition: Range, yes: Range, no: Range) -> Range:
    surely, perhaps = _truth(condition)
    low, high = (
        torch.where(surely > 0, a, torch.where(perhaps == 0, b, pick(a, b)))
        for a, b, pick in zip(yes, no, (torch.minimum, torch.maximum), strict=True)
    )
    return low, high


def _of_logic(node: Node, given: list[Range]) -> Range | None:
    """Of bits where they are those of truths, or all zero."""
    if node.target in _BITWISE and node.meta["val"].dtype != torch.bool:
        if node.target not in AND:
            return None
        is_zero = torch.stack([(low == 0) & (high == 0) for low, high in given]).any(0)
        end = torch.where(is_zero, 0.0, math.inf)
        return -end, end
    truths = [_truth(each) for each in given]
    if node.target in NOT:
        ((low, high),) = truths
        return 1 - high, 1 - low
    (a, b), (c, d) = truths
    if node.target in AND:
        return a * c, b * d
    return torch.maximum(a, c), torch.maximum(b, d)


def _of_equality(target: Any, given: list[Range]) -> Range:
    (a, b), (c, d) = given
    equal = (a == b) & (c == d) & (a == c)
    unequal = (a > d) | (b < c)
    always, never = (equal, unequal) if target in EQUAL else (unequal, equal)
    return always.double(), (~never).double()


def _are_below_infinity(rw: Rewriter, node: Node) -> bool:
    return all(is_below_infinity(rw, a) for a in arguments(node)[:2] if is_scores(rw, a))


def _stored(found: Range, dtype: torch.dtype) -> Range:
    """As numbers of the type."""
    low, high = found
    if dtype == torch.bool:
        return _truth(found)
    if dtype.is_floating_point:
        return low.to(dtype).double(), high.to(dtype).double()
    low, high, ends = low.trunc(), high.trunc(), torch.iinfo(dtype)
    largest = min(ends.max, _LARGEST_INTEGER)
    is_large = (low < max(ends.min, -_LARGEST_INTEGER)) | (high > largest)
    return low.masked_fill(is_large, -math.inf), high.masked_fill(is_large, math.inf)


def _joined(operands: list[Bounds], low: Tensor, high: Tensor) -> Bounds | None:
    """Ranges [of the first operand, of the second, ...] at each entry's place; None if they say
    nothing."""
    ranges = torch.stack([low.flatten(), high.flatten()], -1)
    distinct, inverse = ranges.unique(dim=0, return_inverse=True)
    says = (distinct[:, 0] > -math.inf) | (distinct[:, 1] < math.inf)
    if len(distinct) > 255 or not bool(says.any()):
        return None
    table = inverse.view(low.shape).to(torch.uint8)
    places = look_up(table, [b.places for b in operands])
    assumes = frozenset[Node]().union(*(b.assumes for b in operands))
    return Bounds(places, distinct[:, 0], distinct[:, 1], assumes)
