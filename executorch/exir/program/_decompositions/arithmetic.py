"""Casts, shifts, products, and truth of a whole tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten


@rule(_aten._to_copy.default)
def cast_complex(self: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
    """Between complex and other types, by the parts."""
    if dtype is None or dtype == self.dtype or not (dtype.is_complex or self.is_complex()):
        return NotImplemented
    if not dtype.is_complex:
        return torch.view_as_real(self).select(-1, 0).to(dtype)
    real, imaginary = (self, None)
    if self.is_complex():
        parts = torch.view_as_real(self)
        real, imaginary = parts.select(-1, 0), parts.select(-1, 1)
    real = real.to(dtype.to_real())
    imaginary = torch.zeros_like(real) if imaginary is None else imaginary.to(dtype.to_real())
    return torch.complex(real, imaginary)


@rule(_aten.angle.default)
def angle(self: Tensor) -> Any:
    if not self.is_complex():
        return NotImplemented
    parts = torch.view_as_real(self)
    return torch.atan2(parts.select(-1, 1), parts.select(-1, 0))


@rule(_aten.exp.default)
def exp(self: Tensor) -> Any:
    if not self.is_complex():
        return NotImplemented
    parts = torch.view_as_real(self)
    return torch.polar(torch.exp(parts.select(-1, 0)), parts.select(-1, 1))


@rule(_aten.__lshift__.Scalar, _aten.__lshift__.Tensor)
def shift_left(self: Tensor, other: Any) -> Tensor:
    if self.is_floating_point():
        return self * torch.pow(2.0, other) if isinstance(other, Tensor) else self * 2.0**other
    return torch.bitwise_left_shift(self, other)


@rule(_aten.__rshift__.Scalar, _aten.__rshift__.Tensor)
def shift_right(self: Tensor, other: Any) -> Tensor:
    if self.is_floating_point():
        return self / torch.pow(2.0, other) if isinstance(other, Tensor) else self / 2.0**other
    return torch.bitwise_right_shift(self, other)


@rule(_aten.addbmm.default)
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if not self.is_floating_point():
        beta, alpha = int(beta), int(alpha)
    product = torch.bmm(batch1, batch2).sum(0, dtype=batch1.dtype)
    if alpha != 1:
        product = product * alpha
    if beta == 0:  # whatever `self` holds
        return product
    return product + (self if beta == 1 else self * beta)


@rule(_aten._trilinear.default)
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Tensor:
    for dims, place in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for dim in sorted(dims):
            i1, i2, i3 = (t.unsqueeze(dim) if i == place else t for i, t in enumerate((i1, i2, i3)))
    product = i1 * i2 * i3
    return product.sum(sumdim, dtype=product.dtype) if sumdim else product


@rule(_aten.conv_tbc.default)
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    result = torch.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)


@rule(_aten._is_all_true.default)
def is_all_true(self: Tensor) -> Tensor:
    return self.all()


@rule(_aten._is_any_true.default)
def is_any_true(self: Tensor) -> Tensor:
    return self.any()
