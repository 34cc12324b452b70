"""Symbolic integers as plain ones: by the trace-time hint or by the upper bound of their range."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import sympy
import torch

from executorch.exir.torch_internals import (
    FloorDiv,
    TensorReferenceAnalysis,
    ValueRanges,
    bound_sympy,
    bounds_version,
    hint_of,
    sympy_interp,
)

SymIntLike = int | torch.SymInt

# Bounds at or beyond this come from "no bound was given" (int_oo, sys.maxsize - 1 and so on).
_UNBOUNDED = 2**62

# Of a symbol, up to which an expression is computed for each of them.
_MOST_VALUES = 2**20


def eval_expr(symint: SymIntLike) -> int | None:
    """The value seen while tracing; None for a data-dependent symbol, which has none."""
    if isinstance(symint, int):
        return symint
    hint = hint_of(symint)
    if hint is None:
        hint = symint.node.maybe_as_int()
    return None if hint is None else int(hint)


def upper_bound(symint: SymIntLike) -> int | None:
    """The largest value its range constraints allow; None if there is no finite one."""
    if isinstance(symint, int):
        return symint
    node: Any = symint.node
    known = _bounds_of(node.shape_env)
    if node.expr not in known:
        bound = bound_sympy(*_name_quotients(node.expr, node.shape_env.var_to_range)).upper
        # `upper` is a sympy number or one of several infinities, none of which is an Integer.
        finite = getattr(bound, "is_Integer", False) and int(bound) < _UNBOUNDED
        known[node.expr] = int(bound) if finite else None
    return known[node.expr]


class _OfManyValues(TensorReferenceAnalysis):  # type: ignore[misc]
    """Expressions computed for a tensor of a symbol's values."""

    @staticmethod
    def int_truediv(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(a).double() / b

    @staticmethod
    def mod(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.remainder(torch.as_tensor(a), b)


def _name_quotients(expr: Any, ranges: Any) -> tuple[Any, Any]:
    """`expr` with a symbol in the place of each quotient by what is symbolic itself, and `ranges`
    with theirs.

    Such are the extents that torch gives to a dimension split off by a view: k is n // (n // k).
    The bounds of numerator and denominator alone would make it as large as n.
    """
    names = {}
    known = dict(ranges)
    for quotient in expr.atoms(FloorDiv):
        values = _values_of(quotient, ranges)
        if values is not None:
            names[quotient] = sympy.Dummy(integer=True)
            known[names[quotient]] = ValueRanges(int(values.min()), int(values.max()))
    return expr.xreplace(names), known


def _values_of(quotient: Any, ranges: Any) -> torch.Tensor | None:
    """Its values for all of its only symbol's; None where there are several symbols, too many
    values, or the divisor is a number: then bounds are tight."""
    divisor = quotient.args[1]
    symbols = quotient.free_symbols
    if divisor.is_number or len(symbols) != 1:
        return None
    (symbol,) = symbols
    if symbol not in ranges:
        return None
    low, high = ranges[symbol].lower, ranges[symbol].upper
    if not (low.is_Integer and high.is_Integer) or high - low >= _MOST_VALUES:
        return None
    values = torch.arange(int(low), int(high) + 1)
    try:
        values = values[sympy_interp(_OfManyValues, {symbol: values}, divisor) != 0]
        found = sympy_interp(_OfManyValues, {symbol: values}, quotient)
    except NotImplementedError:  # a function that torch has no operators for
        return None
    return found if len(values) else None


def _bounds_of(shape_env: Any) -> dict[Any, int | None]:
    """Bounds computed already, as long as the environment learns nothing new."""
    version = bounds_version(shape_env)
    if shape_env not in _bounds or _bounds[shape_env][0] != version:
        _bounds[shape_env] = (version, {})
    return _bounds[shape_env][1]


_bounds: WeakKeyDictionary[Any, tuple[int, dict[Any, int | None]]] = WeakKeyDictionary()


def largest_seen(symint: SymIntLike) -> int | None:
    """`upper_bound`, or the hint where there is none; None without either."""
    bound = upper_bound(symint)
    return eval_expr(symint) if bound is None else bound


def is_multiple(symint: SymIntLike, of: SymIntLike) -> bool:
    """Whether `symint` divided by `of` leaves no remainder whatever their symbols are."""
    number, divisor = (
        s.node.expr if isinstance(s, torch.SymInt) else sympy.Integer(s) for s in (symint, of)
    )
    return bool(sympy.Mod(number, divisor) == 0)


def eval_upper_bound(maybe_symint: SymIntLike) -> int:
    """`upper_bound`, or the hint where there is none; ValueError without either."""
    bound = largest_seen(maybe_symint)
    if bound is None:
        raise ValueError(f"{maybe_symint} has no upper bound and no trace-time value")
    return bound


def eval_shape(shape: Iterable[SymIntLike]) -> list[int | None]:
    return [eval_expr(s) for s in shape]


def eval_shape_upper_bound(shape: Iterable[SymIntLike]) -> list[int]:
    return [eval_upper_bound(s) for s in shape]


def collect_free_symbols(shape: Iterable[SymIntLike]) -> set[Any]:
    """The sympy symbols that occur in a shape."""
    return {
        symbol for s in shape if isinstance(s, torch.SymInt) for symbol in s.node.expr.free_symbols
    }
