"""Results of 16 bits against a reference in double precision.

A result may differ from eager's only where it is at least as near to the reference, or as near as
a computation in float32 whose result is rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tests.conformance.samples import Sample
from tests.ops.oracle import HALVES, map_tensors, tolerance


@dataclass(frozen=True)
class References:
    """What eager computes from 16 bits, and what the same call gives in double precision; None
    where the operator does not take these types."""

    eager: list[torch.Tensor] | None
    exact: list[torch.Tensor] | None


def references(sample: Sample) -> References:
    def wide(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.double()
        return value

    def call(args: list[Any], kwargs: dict[str, Any]) -> list[torch.Tensor] | None:
        torch.manual_seed(0)
        try:
            results = sample.op(*args, **kwargs)
        except Exception:  # a type that the operator does not take
            return None
        return [results] if isinstance(results, torch.Tensor) else list(results)

    args, kwargs = map_tensors(wide, (sample.args, sample.kwargs))
    args = [torch.float64 if _is_half(a) else a for a in args]
    kwargs = {k: torch.float64 if _is_half(v) else v for k, v in kwargs.items()}
    exact = call(args, kwargs)
    if exact is not None and any(t.dtype in HALVES for t in exact):
        exact = None  # the type is part of what it computes
    return References(call(sample.args, sample.kwargs), exact)


def _is_half(value: Any) -> bool:
    return isinstance(value, torch.dtype) and value in HALVES


def rounding(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Half a unit in the last place of `dtype` at double `values`."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(values.abs().clamp(min=info.tiny)).exponent - 1
    return torch.ldexp(torch.full_like(values, info.eps / 2), exponent)


def farther_than_eager(
    sample: Sample, found: torch.Tensor, eager: torch.Tensor | None, exact: torch.Tensor
) -> str:
    """Where `found` is farther from `exact` than it may be; empty if nowhere."""
    if found.numel() == 0:
        return ""
    exact = exact.double()
    right = exact.to(found.dtype)
    rtol, atol = tolerance(sample.tensors(), exact.float(), sample.op._schema.name)
    allowed = rounding(torch.maximum(exact.abs(), found.double().abs()), found.dtype)
    allowed = allowed + rtol * exact.abs() + atol
    good = (found == right) | (found.isnan() & exact.isnan())
    if eager is not None:
        off = (eager.double() - exact).abs().nan_to_num(0, 0, 0)
        allowed = torch.maximum(allowed, off)
        good |= (found == eager) | (found.isnan() & eager.isnan())
    distance = (found.double() - exact).abs()
    wrong = ~(good | (distance <= allowed))
    if not wrong.any():
        return ""
    worst = torch.where(wrong, distance / allowed, 0).nan_to_num(torch.inf).argmax()
    values = [t.flatten()[worst].item() for t in (found, exact)]
    of_eager = f", eager {eager.flatten()[worst].item()}" if eager is not None else ""
    return (
        f"{int(wrong.sum())} of {wrong.numel()} not close: {values[0]} is farther from {values[1]} "
        f"than {allowed.flatten()[worst].item():.3g}{of_eager}"
    )
