"""The memory operations of a planned graph; they are nodes, the runtime never calls them.

alloc   the memory of an out argument
view    a tensor of another shape over the memory of its base
free    the end of the memory of a tensor whose size no bound is known of
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from executorch.exir.tensor import TensorSpec

AllocSpec = tuple[tuple[int, ...], torch.dtype]


def alloc(spec: AllocSpec | list[AllocSpec]) -> Any:
    """An empty tensor of (shape, dtype), or a list of them. Lets a planned graph run in Python."""
    if isinstance(spec, list):
        return [torch.empty(shape, dtype=dtype) for shape, dtype in spec]
    shape, dtype = spec
    return torch.empty(shape, dtype=dtype)


def free(spec: TensorSpec) -> None:
    pass


def view(base: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """`base` in the shape `size`; shares memory."""
    return base.view(list(size))
