"""Keys and values of earlier tokens: buffers [1, max_context_len, heads, head_dim]."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from executorch.examples.models.llama.model_args import ModelArgs
from executorch.exir.passes import quantized_ops_registry  # noqa: F401  names operators to torch


def shape_of(args: ModelArgs) -> tuple[int, ...]:
    assert args.n_kv_heads is not None and args.head_dim is not None
    return (args.max_batch_size, args.max_context_len, args.n_kv_heads, args.head_dim)


class KVCache(nn.Module):
    """`update` writes the keys and values [1, tokens, heads, head_dim] of the given positions."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(shape, dtype=dtype), persistent=False)
        self.register_buffer("v_cache", torch.zeros(shape, dtype=dtype), persistent=False)

    def update(self, positions: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        # An assignment would drop the leading 1 of k, which not every runtime broadcasts.
        torch.ops.aten.index_put_.default(self.k_cache, [None, positions], k)
        torch.ops.aten.index_put_.default(self.v_cache, [None, positions], v)
        return self.k_cache, self.v_cache


class CustomKVCache(KVCache):
    """Written by llama::update_cache from `start` on."""

    def update_from(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        torch.ops.llama.update_cache(k, self.k_cache, start)
        torch.ops.llama.update_cache(v, self.v_cache, start)
        return self.k_cache, self.v_cache


class QuantizedKVCache(nn.Module):
    """Integers of 8 bits with a scale and a zero point for each token and head."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        *rows, head_dim = shape
        for name in ("k", "v"):
            for suffix, last, dtype in (
                ("_cache", head_dim, torch.int8),
                ("_cache_scales", 1, torch.float32),
                ("_cache_zero_points", 1, torch.int8),
            ):
                content = torch.zeros((*rows, last), dtype=dtype)
                self.register_buffer(name + suffix, content, persistent=False)

    def update_from(self, start: int, k: Tensor, v: Tensor) -> None:
        for name, value in (("k", k), ("v", v)):
            for suffix, part in zip(
                ("_cache", "_cache_scales", "_cache_zero_points"), quantized(value), strict=True
            ):
                torch.ops.llama.update_cache(part, getattr(self, name + suffix), start)


def quantized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Integers, scales and zero points of the rows of x."""
    ops = torch.ops.quantized_decomposed
    scales, zero_points = ops.choose_qparams_per_token_asymmetric.default(x.float(), torch.int8)
    rows = ops.quantize_per_token.default(x.float(), scales, zero_points, -128, 127, torch.int8)
    return rows, scales.float(), zero_points.to(torch.int8)
