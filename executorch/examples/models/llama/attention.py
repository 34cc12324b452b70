"""Caches of keys and values for models of any origin, which give their tokens' positions.

Keys and values come and go as [batch, heads, tokens, head_dim]. Models of this folder have caches
of their own (`kv_cache`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class KVCache(nn.Module):
    """Buffers [max_batch_size, n_heads, max_context_length, head_dim].

    enable_dynamic_shape  the number of tokens may change from call to call: they lie behind the
                          first position; else each has the position that is given for it
    """

    def __init__(
        self,
        max_batch_size: int,
        max_context_length: int,
        n_heads: int,
        head_dim: int,
        enable_dynamic_shape: bool,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.max_batch_size, self.max_context_length = max_batch_size, max_context_length
        self.n_heads, self.head_dim = n_heads, head_dim
        self.enable_dynamic_shape = enable_dynamic_shape
        shape = (max_batch_size, n_heads, max_context_length, head_dim)
        self.register_buffer("k_cache", torch.zeros(shape, dtype=dtype))
        self.register_buffer("v_cache", torch.zeros(shape, dtype=dtype))

    def update(self, input_pos: Tensor, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor]:
        """Write at the positions `input_pos` [tokens]; all keys and values."""
        if self.enable_dynamic_shape:
            start = input_pos[0].item()
            torch._check(start >= 0)
            torch._check(start < self.max_context_length)
            input_pos = torch.arange(k_val.size(2), device=self.k_cache.device) + start
        return self._write(input_pos, k_val, v_val)

    def _write(self, slots: Tensor, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor]:
        torch.ops.aten.index_put_.default(self.k_cache, [None, None, slots], k_val)
        torch.ops.aten.index_put_.default(self.v_cache, [None, None, slots], v_val)
        return self.k_cache, self.v_cache


class CachePositionsManager(nn.Module):
    """Which position lies in which slot of a cache whose slots are used again; -1: none.

    Position p lies in slot p modulo their number.
    """

    def __init__(self, max_context_length: int) -> None:
        super().__init__()
        self.max_context_length = max_context_length
        positions = torch.zeros(max_context_length, dtype=torch.long)
        self.register_buffer("cache_positions", positions)

    def calculate_positions_and_update_indices(self, input_pos: Tensor, seq_len: int) -> Tensor:
        """The slots of `seq_len` tokens from position `input_pos[0]` on, which are theirs now.

        In the first round, no slot behind the first token holds anything.
        """
        start = input_pos[0].item()
        torch._check(start >= 0)
        held = self.cache_positions
        positions = torch.arange(seq_len, device=held.device) + start
        slots = positions % self.max_context_length
        all_slots = torch.arange(self.max_context_length, device=held.device)
        held.copy_(torch.where(all_slots < start, held, -1))
        held.index_copy_(0, slots, positions)
        return slots


class SlidingWindow(nn.Module):
    """Before a cache among the bases: one for layers that attend to the last `window_size` tokens,
    the cache's `max_context_length`.

    It has twice as many slots: a step of up to a window's length then overwrites nothing that
    its first token attends to.
    """

    is_ring_buffer = True
    window_size: int
    cache_positions_manager: CachePositionsManager

    def __init__(
        self,
        max_batch_size: int,
        max_context_length: int,
        n_heads: int,
        head_dim: int,
        *options: Any,
        **named_options: Any,
    ) -> None:
        n_slots = 2 * max_context_length
        super().__init__(max_batch_size, n_slots, n_heads, head_dim, *options, **named_options)
        self.window_size = max_context_length
        self.cache_positions_manager = CachePositionsManager(n_slots)

    def slots_of(self, input_pos: Tensor, k_val: Tensor) -> Tensor:
        """The slots for the new tokens; ValueError if there are more than slots."""
        n_tokens, n_slots = k_val.size(2), 2 * self.window_size
        if n_tokens > n_slots:
            raise ValueError(
                f"{type(self).__name__}: {n_tokens} tokens at once for {n_slots} slots"
            )
        return self.cache_positions_manager.calculate_positions_and_update_indices(
            input_pos, n_tokens
        )

    def create_causal_mask_for_ring_buffer(self, start_pos: int, seq_len: int) -> Tensor:
        """[seq_len, slots]: 0 where a token from `start_pos` on attends to a slot, else -inf."""
        held = self.cache_positions_manager.cache_positions
        queries = torch.arange(seq_len, device=held.device).view(-1, 1) + start_pos
        distance = queries - held
        is_seen = (held >= 0) & (distance >= 0) & (distance < self.window_size)
        return torch.where(is_seen, 0.0, float("-inf"))


class RingKVCache(SlidingWindow, KVCache):
    """A `KVCache` with the slots of a window of `max_context_length` tokens."""

    def update(self, input_pos: Tensor, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor]:
        return self._write(self.slots_of(input_pos, k_val), k_val, v_val)
