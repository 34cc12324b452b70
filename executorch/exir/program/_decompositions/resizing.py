"""Resizing of volumes."""

from __future__ import annotations

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten

# The elements of a plane up to which a position is exact as a float, also between two elements.
_MOST_OF_A_PLANE = 2**22


@rule(_aten.upsample_trilinear3d.vec)
def upsample_trilinear3d(
    input: Tensor,
    output_size: list[int] | None,
    align_corners: bool,
    scale_factors: list[float] | None,
) -> Tensor:
    """Planes are resized, and then the first dim of the volume, as the height of an image whose
    width stays. Torch gathers the eight corners of each element."""

    def resize(x: Tensor, size: list[int] | None, scales: list[float] | None) -> Tensor:
        return _aten.upsample_bilinear2d.vec(x, size, align_corners, scales)  # type: ignore[no-any-return]

    planes = input.flatten(0, 2)[:, None]
    scales, size = scale_factors, output_size
    planes = resize(planes, size and size[1:], scales and scales[1:])
    height, width = planes.shape[2:]
    if isinstance(height * width, int) and height * width > _MOST_OF_A_PLANE:
        raise ValueError(
            f"upsample_trilinear3d: planes of {height} x {width} elements; at most "
            f"{_MOST_OF_A_PLANE} are supported"
        )
    images = planes.reshape(-1, 1, input.shape[2], height * width)
    result = resize(images, size and [size[0], height * width], scales and [scales[0], 1.0])
    return result.reshape(*input.shape[:2], -1, height, width)
