"""Cubic resizing of images and linear resizing of volumes, one dim after the other, the last first.
Torch gathers all neighbours of each element, 16 and 8, or has no decomposition."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten


@rule(_aten.upsample_bicubic2d.vec)
def upsample_bicubic2d(
    input: Tensor,
    output_size: list[int] | None,
    align_corners: bool,
    scale_factors: list[float] | None,
) -> Tensor:
    """Torch has integer weights for bytes; the results differ by one at most."""
    return _resized(input, output_size, align_corners, scale_factors, _cubic)


@rule(_aten.upsample_trilinear3d.vec)
def upsample_trilinear3d(
    input: Tensor,
    output_size: list[int] | None,
    align_corners: bool,
    scale_factors: list[float] | None,
) -> Tensor:
    return _resized(input, output_size, align_corners, scale_factors, _linear)


@rule(_aten._upsample_bicubic2d_aa.default)
def _upsample_bicubic2d_aa(
    self: Tensor,
    output_size: list[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """Products with the weights of all places, which are constants where the sizes are."""
    result = self if self.dtype == torch.float64 else self.float()
    for dim, scale in ((-1, scales_w), (-2, scales_h)):
        n, size = self.shape[dim], output_size[dim]
        weights = _weights_of_shrinking(n, size, align_corners, scale, result)
        result = result @ weights.T if dim == -1 else weights @ result
        if self.dtype == torch.uint8:
            result = result.round().clamp(0, 255)
    return result.to(self.dtype)


def _weights_of_shrinking(
    n: int, size: int, align_corners: bool, scale: float | None, like: Tensor
) -> Tensor:
    """[size, n]: by how much each of n places counts in each of `size`. A place of the result is as
    wide as it is in the operand, at least 1; the cubic convolution of Keys with a = -1/2."""
    places = torch.arange(size, dtype=like.dtype, device=like.device)
    given = torch.arange(n, dtype=like.dtype, device=like.device)
    if align_corners:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1 / scale if scale else n / size
    width = torch.sym_max(step, 1.0)
    centers = step * (places + 0.5)
    t = ((given + 0.5 - centers.view(-1, 1)) / width).abs()
    near = (1.5 * t - 2.5) * t * t + 1
    far = ((-0.5 * t + 2.5) * t - 4) * t + 2
    weights = torch.where(t < 1, near, far.where(t < 2, 0.0))
    return weights / weights.sum(1, keepdim=True)


# How far the neighbours are from the one before a place, and their weights, of the distance t from
# that one to the place.
_Taps = list[tuple[int, Tensor]]


def _linear(t: Tensor) -> _Taps:
    return [(0, 1 - t), (1, t)]


def _cubic(t: Tensor) -> _Taps:
    """The cubic convolution of Keys with a = -3/4."""

    def near(t: Tensor) -> Tensor:
        return (1.25 * t - 2.25) * t * t + 1

    def far(t: Tensor) -> Tensor:
        return ((-0.75 * t + 3.75) * t - 6) * t + 3

    return [(-1, far(t + 1)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))]


def _resized(
    input: Tensor,
    sizes: list[int] | None,
    align_corners: bool,
    scales: list[float] | None,
    taps: Callable[[Tensor], _Taps],
) -> Tensor:
    # Halves and bytes are computed in float.
    result = input if input.dtype == torch.float64 else input.float()
    for dim in range(-1, 1 - input.dim(), -1):
        n = input.shape[dim]
        scale = scales[dim] if scales else None
        size = torch.sym_int(n * scale) if scale else sizes[dim]  # type: ignore[index]
        at = torch.arange(size, dtype=result.dtype, device=result.device)
        if align_corners:
            at = at * ((n - 1) / torch.sym_max(size - 1, 1))
        else:
            at = (at + 0.5) * (1 / scale if scale else n / size) - 0.5
            at = at.clamp(min=0) if taps is _linear else at
        before = at.floor()
        parts = []
        for distance, weight in taps(at - before):
            index = (before.to(torch.int64) + distance).clamp(0, n - 1)
            parts.append(result.index_select(dim, index) * weight.view(-1, *[1] * (-1 - dim)))
        result = sum(parts[1:], parts[0])
        if input.dtype == torch.uint8:
            result = result.round().clamp(0, 255)
    return result.to(input.dtype)
