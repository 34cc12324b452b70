"""Dim order (dims by descending stride) and torch memory formats.

The edge dialect knows two orders: contiguous (identity) and, in 4-D, channels-last [0,2,3,1].
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

_CHANNELS_LAST = [0, 2, 3, 1]


def get_dim_order(memory_format: torch.memory_format | None, ndim: int) -> list[int]:
    """The dim order that a memory format gives `ndim` dims; ValueError if there is none."""
    if memory_format in (None, torch.preserve_format, torch.contiguous_format):
        return list(range(ndim))
    if memory_format == torch.channels_last and ndim == 4:
        return list(_CHANNELS_LAST)
    raise ValueError(
        f"memory format {memory_format} of a {ndim}-d tensor has no dim order in the edge dialect; "
        "contiguous (any rank) and channels_last (4-d) have"
    )


def get_memory_format(dim_order: Sequence[int] | None) -> torch.memory_format:
    """The memory format of a dim order (None: contiguous); ValueError if there is none."""
    if dim_order is None or list(dim_order) == list(range(len(dim_order))):
        return torch.contiguous_format
    if list(dim_order) == _CHANNELS_LAST:
        return torch.channels_last
    raise ValueError(
        f"dim order {list(dim_order)} is neither contiguous {list(range(len(dim_order)))} "
        f"nor channels-last {_CHANNELS_LAST}"
    )


def is_contiguous_dim_order(tensor: torch.Tensor) -> bool:
    return list(tensor.dim_order()) == list(range(tensor.dim()))


def is_channel_last_dim_order(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 4 and list(tensor.dim_order()) == _CHANNELS_LAST
