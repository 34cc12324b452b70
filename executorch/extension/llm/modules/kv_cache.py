"""A cache of keys and values."""

from __future__ import annotations

import torch
from torch import Tensor


class KVCache(torch.nn.Module):
    """Caches [batch, heads, capacity, dim], or [batch, capacity, heads, dim] where
    `transpose_cache` is false, and the positions that are written next, `kv_cache_pos`.

    A program of one begins at position 0 only if it stores `kv_cache_pos`: give
    `InitializedMutableBufferPass(["kv_cache_pos"])` to `to_executorch`.
    """

    k_cache: Tensor
    v_cache: Tensor
    kv_cache_pos: Tensor

    def __init__(
        self,
        batch_size: int,
        max_seq_len: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        transpose_cache: bool = True,
    ) -> None:
        super().__init__()
        self.batch_size, self.max_seq_len = batch_size, max_seq_len
        self.transpose_cache = transpose_cache
        middle = (num_kv_heads, max_seq_len) if transpose_cache else (max_seq_len, num_kv_heads)
        for name in ("k_cache", "v_cache"):
            cache = torch.zeros(batch_size, *middle, head_dim, dtype=dtype)
            self.register_buffer(name, cache, persistent=False)
        self.register_buffer("kv_cache_pos", torch.arange(max_seq_len), persistent=False)

    @property
    def size(self) -> int:
        """The number of tokens in the cache."""
        return int(self.kv_cache_pos[0].item())

    def reset(self) -> None:
        """Forget all tokens."""
        self.k_cache.zero_()
        self.v_cache.zero_()
        self.kv_cache_pos.copy_(torch.arange(self.max_seq_len, device=self.kv_cache_pos.device))

    def update(self, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values of some tokens, whose dimensions are in the caches' order, and
        return the caches. ValueError for a larger batch than the cache's, AssertionError for more
        tokens than fit."""
        self._write(k_val, v_val, self.k_cache, self.v_cache)
        self.kv_cache_pos.add_(k_val.shape[2 if self.transpose_cache else 1])
        return self.k_cache, self.v_cache

    def updated(self, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three buffers after an `update`, without changing them."""
        keys, values = self.k_cache.clone(), self.v_cache.clone()
        self._write(k_val, v_val, keys, values)
        return keys, values, self.kv_cache_pos + k_val.shape[2 if self.transpose_cache else 1]

    def _write(self, k_val: Tensor, v_val: Tensor, keys: Tensor, values: Tensor) -> None:
        tokens = k_val.shape[2 if self.transpose_cache else 1]
        if k_val.shape[0] > self.batch_size:
            raise ValueError(
                f"keys of {k_val.shape[0]} batch entries, and a cache of {self.batch_size}"
            )
        # In programs, the operator that writes checks its positions.
        if not torch.compiler.is_compiling() and self.size + tokens > self.max_seq_len:
            raise AssertionError(
                f"{tokens} tokens behind {self.size} exceed a cache of {self.max_seq_len}"
            )
        positions = self.kv_cache_pos[:tokens]
        if self.transpose_cache:
            keys[:, :, positions], values[:, :, positions] = k_val, v_val
        else:
            keys[:, positions], values[:, positions] = k_val, v_val

    def clone(self) -> KVCache:
        """A copy of the cache."""
        heads = self.k_cache.shape[1 if self.transpose_cache else 2]
        twin = KVCache(
            self.batch_size,
            self.max_seq_len,
            heads,
            self.k_cache.shape[3],
            self.k_cache.dtype,
            self.transpose_cache,
        )
        for name, buffer in self.named_buffers():
            twin.get_buffer(name).copy_(buffer)
        return twin
