"""Distinct elements, matrices and products of them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten


@rule(_aten.unique_consecutive.default)
def unique_consecutive(
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    if dim is not None and dim < 0:
        raise ValueError(
            f"unique_consecutive: dim is {dim}; torch.export mistakes the shape of the result for "
            f"dims counted from the end, write {dim + self.dim()}"
        )
    return NotImplemented


@rule(_aten.take.default)
def take(self: Tensor, index: Tensor) -> Any:
    return _aten.index.Tensor(self.reshape(-1), [index])


@rule("cholesky.default")
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    return torch.linalg.cholesky_ex(self, upper=upper, check_errors=True)[0]


@rule(_aten.cholesky_solve.default)
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    first, second = (input2.mT, input2) if upper else (input2, input2.mT)
    half = torch.linalg.solve_triangular(first, self, upper=False)
    return torch.linalg.solve_triangular(second, half, upper=True)


@rule(_aten.cholesky_inverse.default)
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    identity = torch.eye(self.shape[-1], dtype=self.dtype, device=self.device)
    return cholesky_solve(identity.expand(self.shape), self, upper)


@rule(_aten.triangular_solve.default)
def triangular_solve(
    self: Tensor,
    A: Tensor,  # noqa: N803 (the schema's)
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    solved = torch.linalg.solve_triangular(
        A.mT if transpose else A, self, upper=upper != transpose, unitriangular=unitriangular
    )
    return solved, A.expand(*solved.shape[:-2], *A.shape[-2:]).clone()


@rule(_aten.linalg_pinv.atol_rtol_tensor)
def pinv(
    self: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """Singular values up to max(atol, rtol * the largest) count as zero."""
    if 0 in self.shape[-2:]:
        return self.mT.clone()
    u, s, vh = torch.linalg.svd(self, full_matrices=False)
    if rtol is None:
        eps = torch.finfo(self.dtype).eps * max(self.shape[-2:])
        bound = s[..., :1] * (eps if atol is None else torch.where(atol > 0, 0.0, eps)[..., None])
    else:
        bound = s[..., :1] * rtol[..., None]
    if atol is not None:
        bound = torch.maximum(bound, atol[..., None])
    inverse = torch.where(s > bound, 1 / s, 0.0)
    return vh.mT @ (inverse[..., None] * u.mT)


@rule(_aten.linear.default)
def linear(self: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """One product of matrices, whatever the strides: torch's own rule expands the weight to a batch
    where a transposed operand is a view, which it is no longer once views are copies."""
    if self.dim() < 2:
        product = torch.matmul(self, weight.t())
        return product if bias is None else product + bias
    if self.dim() == 2:
        return torch.mm(self, weight.t()) if bias is None else torch.addmm(bias, self, weight.t())
    flat = (math.prod(self.shape[:-1]), self.shape[-1])
    if bias is None:
        transposed = weight.t()
        rows = torch.mm(self.reshape(flat), transposed)
    else:
        rows = torch.addmm(bias, self.reshape(flat), weight.t())
    return rows.view(*self.shape[:-1], weight.shape[0])


@rule(_aten.mv.default)
def mv(self: Tensor, vec: Tensor) -> Tensor:
    """A product of matrices, as of nn.Linear; torch's adds up a tensor of all products."""
    return torch.mm(vec[None], self.t())[0]


@rule(_aten.affine_grid_generator.default)
def affine_grid_generator(theta: Tensor, size: list[int], align_corners: bool) -> Tensor:
    """A product of matrices; torch's adds up a tensor of all products."""
    n, _, *extents = size
    axes = [_axis(theta, extent, align_corners) for extent in extents]
    places = list(reversed(torch.meshgrid(*axes, indexing="ij")))
    base = torch.stack([*places, torch.ones_like(places[0])], -1)
    grid = base.reshape(-1, len(extents) + 1) @ theta.mT
    return grid.reshape(n, *extents, len(extents))


def _axis(theta: Tensor, extent: int, align_corners: bool) -> Tensor:
    """The places of `extent` pixels from -1 to 1, which are the outermost pixels' centers if
    `align_corners`, their edges otherwise."""
    if extent <= 1:
        return torch.zeros(extent, dtype=theta.dtype, device=theta.device)
    last = 1 if align_corners else (extent - 1) / extent
    return torch.linspace(-last, last, extent, dtype=theta.dtype, device=theta.device)
