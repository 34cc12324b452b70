"""Compares two results, with a bound for each element."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Difference:
    """The element of a result that is furthest beyond what rounding explains."""

    index: tuple[int, ...]
    found: float | int
    expected: float | int
    bound: float
    elements: int  # beyond the bound
    of: int

    def __str__(self) -> str:
        return (
            f"at {list(self.index)}: found {_shown(self.found)}, "
            f"expected {_shown(self.expected)} "
            f"+- {self.bound:.2g} ({self.elements} of {self.of} elements are beyond their bound)"
        )


def compare(found: Tensor, expected: Tensor, allowed: Tensor) -> tuple[str, Difference | None]:
    """Compare `found` with `expected`: a message about the element that is furthest beyond
    `allowed`, or "". Equal infinities, and NaNs, agree. Integers are compared exactly."""
    if found.numel() == 0:
        return "", None
    if found.is_floating_point() or expected.is_floating_point():
        f, e = found.double(), expected.double()
        off = (f - e).abs()
    else:
        # In float64, integers beyond 2^53 that differ may be equal.
        f, e = found.long(), expected.long()
        off = torch.maximum(f, e) - torch.minimum(f, e)
        off = torch.where(off < 0, float("inf"), off.double())  # negative: it does not fit
    bad = ~((off <= allowed) | (f == e) | (f.isnan() & e.isnan()))
    if not bool(bad.any()):
        return "", None
    over = torch.where(bad, (off / (allowed + 1e-300)).nan_to_num(float("inf")), -1.0)
    worst = int(over.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), found.shape))
    allowed_there = allowed.expand(found.shape)[index]
    difference = Difference(
        index, f[index].item(), e[index].item(), float(allowed_there), int(bad.sum()), f.numel()
    )
    return str(difference), difference


def _shown(value: float | int) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"
