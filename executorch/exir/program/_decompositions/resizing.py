"""Cubic resizing of images and linear resizing of volumes, one dim after the other, the last first.
Torch gathers all neighbours of each element, 16 and 8."""

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
