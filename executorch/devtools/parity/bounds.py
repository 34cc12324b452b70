"""What rounding may change in the result of one operator, computed from its arguments.

The reference of a call is the operator in float64 on the very arguments the runtime had. A result
may differ from it by what one rounding of each argument would change, taken from calls with
arguments changed by the unit roundoff at random signs; where it is a sum, by the roundings of its
type, growing with the root of the number of terms, relative to the sum of absolute products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

# Operators that compute sums of products: their rounding error is bounded by f(|arguments|). Gives
# the number of terms of each sum.
_CONTRACTIONS: dict[str, Callable[[Sequence[Any]], int]] = {
    "aten::mm": lambda a: a[0].shape[-1],
    "aten::bmm": lambda a: a[0].shape[-1],
    "aten::addmm": lambda a: a[1].shape[-1],
    "aten::baddbmm": lambda a: a[1].shape[-1],
    "aten::linear": lambda a: a[0].shape[-1],
    "aten::convolution": lambda a: a[1][0].numel(),
    "aten::sum": lambda a: a[0].numel(),
    "aten::mean": lambda a: a[0].numel(),
    "aten::cumsum": lambda a: a[0].numel(),
    "aten::avg_pool2d": lambda a: 64,
}
_ROUNDINGS = 16  # of a well-made kernel: polynomials, exponent steps, a division


def is_contraction(name: str) -> bool:
    return name in _CONTRACTIONS


def bound(
    name: str,
    function: Callable[[Sequence[Any]], Sequence[Any]],
    args: Sequence[Any],
    reference: Tensor,
    output: int,
    dtype: torch.dtype,
) -> Tensor:
    """The largest difference from `reference` that rounding explains, element by element.

    function   the operator in float64, from arguments to outputs; `reference` is one of them
    dtype      of the result under test
    """
    unit = torch.finfo(dtype).eps
    result = _ROUNDINGS * unit * reference.abs()
    if is_contraction(name):
        sums = function([map_floats(a, Tensor.abs) for a in args])[output].abs()
        terms = max(1, _CONTRACTIONS[name](args))
        return result + (8 + 2 * terms**0.5) * unit * sums
    for seed in (1, 2):
        generator = torch.Generator().manual_seed(seed)
        nudge = partial(_nudge, unit=unit, generator=generator)
        nudged = function([map_floats(a, nudge) for a in args])[output]
        change = (nudged - reference).abs()
        # Elements of a row share their operands (as in a norm, a softmax or a sum), so take the
        # row's largest change.
        spread = change.nan_to_num(0.0, 0.0, 0.0)
        wide = spread.amax(-1, keepdim=True) if spread.dim() and spread.numel() else spread
        result = result + _ROUNDINGS * torch.maximum(spread, wide)
    return result + torch.finfo(dtype).tiny


def _nudge(t: Tensor, unit: float, generator: torch.Generator) -> Tensor:
    signs = torch.randint(0, 2, t.shape, generator=generator, dtype=torch.int8) * 2 - 1
    return t * (1 + unit * signs.to(t.dtype))


def map_floats(value: Any, f: Callable[[Tensor], Tensor]) -> Any:
    """Apply `f` to each floating-point tensor in `value` and its lists."""
    if isinstance(value, Tensor):
        return f(value) if value.is_floating_point() else value
    if isinstance(value, list):
        return [map_floats(v, f) for v in value]
    return value
