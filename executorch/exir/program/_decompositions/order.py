"""Order statistics that the runtime lacks: by sorting, which puts NaN last."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten


def _sorted(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """(values, their places), sorted stably along `dim`; of a number, as of one element."""
    if self.dim() == 0:
        self = self.reshape(1)
    return torch.sort(self, dim)


def _gathered(
    self: Tensor, values: Tensor, places: Tensor, at: Tensor, dim: int, keepdim: bool
) -> tuple[Tensor, Tensor]:
    """The elements of `values` and `places` at the place that `at` has for each line along `dim`,
    in the shape of a reduction of `self`."""
    found = [t.gather(dim, at) for t in (values, places)]
    if not (keepdim and self.dim() > 0):
        found = [t.squeeze(dim) for t in found]
    return found[0], found[1]


@rule(_aten.sort.stable)
def stable_sort(
    self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """The runtime's sort is stable."""
    return torch.sort(self, dim, descending)


@rule(_aten.median.default)
def median(self: Tensor) -> Tensor:
    if self.numel() == 0:
        return torch.full((), _nothing(self.dtype), dtype=self.dtype, device=self.device)
    return torch.median(self.reshape(-1), 0)[0]


@rule(_aten.nanmedian.dim)
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.is_floating_point():
        found, place = torch.median(self, dim, keepdim)
        return found, place
    values, places = _sorted(self, dim)
    n = (~torch.isnan(values)).sum(dim, keepdim=True)
    at = torch.clamp_min((n - 1) // 2, 0)
    return _gathered(self, values, places, at, dim, keepdim)


@rule(_aten.nanmedian.default)
def nanmedian(self: Tensor) -> Tensor:
    if self.numel() == 0:
        return torch.full((), _nothing(self.dtype), dtype=self.dtype, device=self.device)
    return nanmedian_dim(self.reshape(-1), 0)[0]


def _nothing(dtype: torch.dtype) -> float | int:
    """The median of no elements."""
    if dtype.is_floating_point:
        return math.nan
    return torch.iinfo(dtype).min


@rule(_aten.mode.default)
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent element, of these the smallest, and the place of its last occurrence."""
    values, places = _sorted(self, dim)
    n = values.shape[dim]
    behind = -dim - 1 if dim < 0 else values.dim() - 1 - dim
    at = torch.arange(n, device=self.device).reshape([n] + [1] * behind)
    before = values.narrow(dim, 0, n - 1)
    starts = torch.ne(values.narrow(dim, 1, n - 1), before)
    starts = torch.cat([torch.ones_like(values.narrow(dim, 0, 1), dtype=torch.bool), starts], dim)
    start = torch.cummax(torch.where(starts, at, 0), dim)[0]
    best = torch.argmax(at - start, dim, keepdim=True)
    return _gathered(self, values, places, best, dim, keepdim)


@rule(_aten.histc.default)
def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    x = self.reshape(-1)
    if x.numel() == 0:
        return torch.zeros(bins, dtype=x.dtype, device=x.device)
    if x.element_size() < 4:  # half a unit there is a bin
        return histc(x.to(torch.float32), bins, min, max).to(x.dtype)
    low: Any = min
    high: Any = max
    if low == high:
        low, high = x.amin(), x.amax()
        same = torch.eq(low, high)
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = torch.floor((x - low) * bins / (high - low))
    place = torch.where(inside, torch.clamp_max(place, bins - 1), 0.0).to(torch.int64)
    return torch.zeros(bins, dtype=x.dtype, device=x.device).scatter_add(
        0, place, inside.to(x.dtype)
    )
