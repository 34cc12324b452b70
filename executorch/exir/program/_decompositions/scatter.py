"""Scattering."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten


def _along(index: Tensor, like: Tensor, dim: int) -> Tensor:
    """`index`, which numbers slices along `dim`, for every element of `like`."""
    shape = [1] * like.dim()
    if like.dim():
        shape[dim] = index.numel()
    return index.reshape(shape).expand(like.shape)


@rule(_aten.select_scatter.default)
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Any:
    """A slice of one position. Torch's rule chooses between two tensors of self's size instead."""
    if not isinstance(index, int):  # whether a symbol is negative would be a guard
        return NotImplemented
    at = index if index >= 0 else self.shape[dim] + index
    return torch.slice_scatter(self, src.unsqueeze(dim), dim, at, at + 1)


@rule(_aten.scatter.reduce, _aten.scatter.value_reduce)
def scatter_reducing(self: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> Tensor:
    if not isinstance(src, Tensor):
        src = torch.full(index.shape, src, dtype=self.dtype, device=self.device)
    if reduce == "add":
        return torch.scatter_add(self, dim, index, src)
    return torch.scatter_reduce(self, dim, index, src, {"multiply": "prod"}[reduce])


@rule(_aten.index_reduce.default)
def index_reduce(
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    along = _along(index.to(torch.int64), source, dim)
    return torch.scatter_reduce(self, dim, along, source, reduce, include_self=include_self)


@rule(_aten.put.default)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = self.reshape(-1)
    places: Any = [index.reshape(-1).to(torch.int64)]
    return torch.index_put(flat, places, source.reshape(-1), accumulate).reshape(self.shape)


@rule(_aten.diagonal_scatter.default)
def diagonal_scatter(
    self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    matrices = torch.movedim(self, (dim1, dim2), (-2, -1))
    columns = matrices.shape[-1]
    flat = matrices.reshape(*matrices.shape[:-2], matrices.shape[-2] * columns)
    at = torch.arange(src.shape[-1], device=self.device) * (columns + 1)
    at = at + (offset if offset >= 0 else -offset * columns)
    flat = torch.scatter(flat, -1, at.expand(src.shape), src)
    return torch.movedim(flat.reshape(matrices.shape), (-2, -1), (dim1, dim2))


@rule(_aten.as_strided_scatter.default)
def as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: list[int],
    stride: list[int],
    storage_offset: int | None = None,
) -> Tensor:
    at = torch.full((), storage_offset or 0, dtype=torch.int64, device=self.device)
    for n, step in zip(size, stride, strict=True):
        at = at.unsqueeze(-1) + torch.arange(n, device=self.device) * step
    flat = torch.scatter(self.reshape(-1), 0, at.reshape(-1), src.reshape(-1))
    return flat.reshape(self.shape)
