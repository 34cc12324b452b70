"""Compares two results, with a bound for each element."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Difference:
    """The element of a result that is furthest beyond what rounding explains."""

    index: tuple[int, ...]
    found: float
    expected: float
    bound: float
    elements: int  # beyond the bound
    of: int

    def __str__(self) -> str:
        return (
            f"at {list(self.index)}: found {self.found:.9g}, expected {self.expected:.9g} "
            f"+- {self.bound:.2g} ({self.elements} of {self.of} elements are beyond their bound)"
        )


def compare(found: Tensor, expected: Tensor, allowed: Tensor) -> tuple[str, Difference | None]:
    """Compare `found` with `expected`: a message about the element that is furthest beyond
    `allowed`, or "". Equal infinities, and NaNs, agree."""
    if found.numel() == 0:
        return "", None
    f, e = found.double(), expected.double()
    off = (f - e).abs()
    bad = ~((off <= allowed) | (f == e) | (f.isnan() & e.isnan()))
    if not bool(bad.any()):
        return "", None
    over = torch.where(bad, (off / (allowed + 1e-300)).nan_to_num(float("inf")), -1.0)
    worst = int(over.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), found.shape))
    allowed_there = allowed.expand(found.shape)[index]
    difference = Difference(
        index, float(f[index]), float(e[index]), float(allowed_there), int(bad.sum()), f.numel()
    )
    return str(difference), difference
