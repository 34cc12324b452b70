"""Caches of programs that take keys and values of earlier tokens as inputs, and give the new ones.

The caller puts what is new into the caches, in one of two styles:

    shift_pointer  the oldest token is first, the newest one last
    smart_mask     token i is at i modulo the cache's length
"""

from __future__ import annotations

import torch
from torch import Tensor


class StaticKVCache:
    """The keys or the values of one layer, [..., tokens, head_dim], and how they are kept."""

    @staticmethod
    def calculate_cache_key(layer_id: int, head_id: int) -> str:
        """The cache's name among a program's; `head_id` is 0 where all heads are in one cache."""
        return f"l{layer_id},h{head_id}"

    @staticmethod
    def apply_update(
        cache: Tensor,
        update: Tensor,
        pos: int,
        style: str,
        transpose: bool = False,
        update_pos: int = 0,
        update_len: int | None = None,
    ) -> Tensor:
        """A copy of `cache` that has the tokens `update_pos` to `update_pos + update_len` (None: to
        the end) of `update`, the first of which is number `pos` of the text; the newest ones, where
        there is no room for all. `transpose`: both are [..., head_dim, tokens]."""
        if style not in ("shift_pointer", "smart_mask"):
            raise ValueError(f"style: expected 'shift_pointer' or 'smart_mask', found {style!r}")
        dim = -1 if transpose else -2
        size = cache.size(dim)
        n = update.size(dim) - update_pos if update_len is None else update_len
        kept = min(n, size)
        rows = update.narrow(dim, update_pos + n - kept, kept).to(cache.dtype)
        if style == "shift_pointer":
            return torch.cat([cache.narrow(dim, kept, size - kept), rows], dim)
        if size == 0:
            return cache.clone()
        places = torch.arange(pos + n - kept, pos + n, device=cache.device) % size
        return cache.index_copy(dim, places, rows)
