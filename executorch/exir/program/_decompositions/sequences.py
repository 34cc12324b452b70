"""Sequences, and what fills a tensor by place."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule
from executorch.exir.torch_internals import reference_linspace

_aten = torch.ops.aten


@rule(_aten.empty_permuted.default)
def empty_permuted(size: list[int], physical_layout: list[int], **options: Any) -> Tensor:
    order = [physical_layout.index(d) for d in range(len(size))]
    return torch.empty([size[d] for d in physical_layout], **options).permute(order)


@rule(_aten.polar.default)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return torch.complex(abs * torch.cos(angle), abs * torch.sin(angle))


@rule(
    _aten.linspace.default,
    _aten.linspace.Tensor_Tensor,
    _aten.linspace.Tensor_Scalar,
    _aten.linspace.Scalar_Tensor,
)
def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """Between integers, from and to the integers that the ends are cast to."""
    dtype = options.get("dtype")
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return reference_linspace(start, end, steps, **options)
    ends: list[Any] = [
        t.to(dtype).to(torch.float64) if isinstance(t, Tensor) else int(t) for t in (start, end)
    ]
    options["dtype"] = torch.float64
    return reference_linspace(ends[0], ends[1], steps=steps, **options).to(dtype)


@rule(_aten.eye.default)
def eye(n: int, **options: Any) -> Tensor:
    return eye_m(n, n, **options)


@rule(_aten.eye.m)
def eye_m(n: int, m: int, **options: Any) -> Tensor:
    """Torch's own rule counts in UInt16 where it can, a type in which eager has no `arange`."""
    dtype = options.get("dtype") or torch.get_default_dtype()
    rows, columns = (torch.arange(size, device=options.get("device")) for size in (n, m))
    return (rows.unsqueeze(-1) == columns).to(dtype)


@rule(_aten.range.default)
def range_(start: Any, end: Any, **options: Any) -> Tensor:
    return range_step(start, end, 1, **options)


@rule(_aten.range.step)
def range_step(start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    dtype = options.get("dtype") or torch.get_default_dtype()
    n = math.floor((end - start) / step) + 1
    return (torch.arange(n, dtype=torch.float64) * step + start).to(dtype)


@rule(_aten.roll.default)
def roll(self: Tensor, shifts: list[int], dims: tuple[int, ...] = ()) -> Any:
    """Two slices side by side for each dim; the runtime's operator where a size is dynamic."""
    rolled, over = (self, dims) if dims else (self.reshape(-1), (0,))
    for shift, dim in zip(shifts, over, strict=True):
        n = rolled.shape[dim]
        if not isinstance(n, int) or not isinstance(shift, int):
            return NotImplemented
        at = -shift % n if n > 0 else 0
        if at > 0:
            parts = torch.narrow(rolled, dim, at, n - at), torch.narrow(rolled, dim, 0, at)
            rolled = torch.cat(parts, dim)
    return rolled.reshape(self.shape) if rolled is not self else self.clone()


@rule(_aten.nonzero_static.default)
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """A place for each of the first `size` nonzeros; the others go to one place more."""
    flat = torch.ne(self.reshape(-1), 0)
    rank = torch.cumsum(flat, 0) - 1
    slot = torch.where(flat & (rank < size), rank, size)
    at = torch.arange(flat.shape[0], device=self.device)
    found = torch.full((size + 1,), -1, dtype=torch.int64, device=self.device)
    found = torch.scatter(found, 0, slot, at)[:size]
    columns = []
    for extent in reversed(self.shape):
        column = torch.remainder(found, max(extent, 1))
        columns.append(torch.where(found >= 0, column, fill_value))
        found = torch.div(found, max(extent, 1), rounding_mode="floor")
    if not columns:
        return torch.empty((size, 0), dtype=torch.int64, device=self.device)
    return torch.stack(columns[::-1], 1)
