"""Cubic resizing of images, and linear resizing of volumes."""

from __future__ import annotations

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule
from executorch.exir.torch_internals import get_decompositions

_aten = torch.ops.aten
_TRILINEAR = _aten.upsample_trilinear3d.vec

# The elements of a plane up to which a position is exact as a float, also between two elements.
_MOST_OF_A_PLANE = 2**22


@rule(_aten.upsample_bicubic2d.vec)
def upsample_bicubic2d(
    input: Tensor,
    output_size: list[int] | None,
    align_corners: bool,
    scale_factors: list[float] | None,
) -> Tensor:
    """One dim after the other, the width first. Torch gathers the sixteen neighbours of each
    element, and has integer weights for bytes."""
    result = _in_float(input)
    for dim in (-1, -2):
        n = input.shape[dim]
        scale = scale_factors[dim] if scale_factors else None
        size = torch.sym_int(n * scale) if scale else output_size[dim]  # type: ignore[index]
        result = _cubic(result, dim, size, align_corners, scale)
        if input.dtype == torch.uint8:
            result = result.round().clamp(0, 255)
    return result.to(input.dtype)


def _cubic(x: Tensor, dim: int, size: int, align_corners: bool, scale: float | None) -> Tensor:
    """Resizes dim -1 or -2 to `size` with the cubic convolution of Keys, a = -3/4."""
    n = x.shape[dim]
    at = torch.arange(size, dtype=x.dtype, device=x.device)
    if align_corners:
        at = at * ((n - 1) / torch.sym_max(size - 1, 1))
    else:
        at = (at + 0.5) * (1 / scale if scale else n / size) - 0.5
    first = at.floor()
    t = at - first
    parts = []
    for tap, distance in enumerate((t + 1, t, 1 - t, 2 - t), -1):
        if tap in (0, 1):
            weight = (1.25 * distance - 2.25) * distance * distance + 1
        else:
            weight = ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
        index = (first.to(torch.int64) + tap).clamp(0, n - 1)
        parts.append(x.index_select(dim, index) * (weight if dim == -1 else weight[:, None]))
    return parts[0] + parts[1] + parts[2] + parts[3]


@rule(_TRILINEAR)
def upsample_trilinear3d(
    input: Tensor,
    output_size: list[int] | None,
    align_corners: bool,
    scale_factors: list[float] | None,
) -> Tensor:
    """Planes are resized, and then the first dim of the volume, as the height of an image whose
    width stays. Torch gathers the eight corners of each element."""

    def resize(x: Tensor, size: list[int] | None, scales: list[float] | None) -> Tensor:
        resized: Tensor = _aten.upsample_bilinear2d.vec(x, size, align_corners, scales)
        return resized

    planes = _in_float(input).flatten(0, 2)[:, None]
    scales, size = scale_factors, output_size
    planes = resize(planes, size and size[1:], scales and scales[1:])
    height, width = planes.shape[2:]
    if isinstance(height * width, int) and height * width > _MOST_OF_A_PLANE:
        of_torch = get_decompositions([_TRILINEAR])[_TRILINEAR]
        whole: Tensor = of_torch(input, output_size, align_corners, scale_factors)
        return whole
    images = planes.reshape(-1, 1, input.shape[2], height * width)
    result = resize(images, size and [size[0], height * width], scales and [scales[0], 1.0])
    return result.reshape(*input.shape[:2], -1, height, width).to(input.dtype)


def _in_float(x: Tensor) -> Tensor:
    """x, or its floats if it is of fewer bits, so that results are rounded once."""
    return x if x.dtype == torch.float64 else x.float()
