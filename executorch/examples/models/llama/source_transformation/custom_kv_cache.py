"""Caches of keys and values that the operators llama::update_cache write, in floats or 8 bits.

Keys and values come and go as [batch, heads, tokens, head_dim], and lie as [batch, tokens, heads,
head_dim], as the operators want them: the transposes are views where the attention is an operator
of the same library. Models of this folder get caches of their own kind (`kv_cache`), which say
which attention they need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from executorch.examples.models.llama import kv_cache as own
from executorch.examples.models.llama.attention import KVCache, RingKVCache, SlidingWindow
from executorch.examples.models.llama.kv_cache import quantized
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401


class QuantizedCacheType(Enum):
    """Only the second is implemented: a scale and a zero point for each token and head."""

    AffineSymmetric = 0
    AffineAsymmetric = 1
    AffineSymmetricGroupWise = 2
    AffineAsymmetricGroupWise = 3


def _write(cache: Tensor, value: Tensor, start: Any, slots: Tensor | None) -> None:
    """Write rows [batch, tokens, ...] from `start` on, or into the given slots [1, tokens]."""
    if slots is None:
        torch.ops.llama.update_cache(value, cache, start)
    else:
        torch.ops.llama.update_cache_with_indices(value, cache, start, slots)


class CustomKVCache(nn.Module):
    """Buffers [max_batch_size, max_context_length, n_heads, head_dim]."""

    def __init__(
        self,
        max_batch_size: int,
        max_context_length: int,
        n_heads: int,
        head_dim: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.max_batch_size, self.max_context_length = max_batch_size, max_context_length
        self.n_heads, self.head_dim = n_heads, head_dim
        shape = (max_batch_size, max_context_length, n_heads, head_dim)
        self.register_buffer("k_cache", torch.zeros(shape, dtype=dtype))
        self.register_buffer("v_cache", torch.zeros(shape, dtype=dtype))

    def update(
        self, input_pos: Tensor, k_val: Tensor, v_val: Tensor, indices: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Write from position `input_pos[0]` on, or at `indices` [1, tokens]; all that is held."""
        start = input_pos[0].item()
        _write(self.k_cache, k_val.transpose(1, 2), start, indices)
        _write(self.v_cache, v_val.transpose(1, 2), start, indices)
        return self.k_cache.transpose(1, 2), self.v_cache.transpose(1, 2)


class _SlidingWindow(SlidingWindow):
    """Of a cache whose `update` takes slots."""

    def update(self, input_pos: Tensor, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor]:
        slots = self.slots_of(input_pos, k_val).unsqueeze(0)
        return super().update(input_pos, k_val, v_val, slots)  # type: ignore


class CustomRingKVCache(_SlidingWindow, CustomKVCache):  # type: ignore[misc]
    """A `CustomKVCache` with the slots of a window of `max_context_length` tokens."""

    @classmethod
    def from_custom_kv_cache(
        cls, kv_cache: CustomKVCache, sliding_window_size: int
    ) -> CustomRingKVCache:
        batch, _, n_heads, head_dim = kv_cache.k_cache.shape
        return cls(batch, sliding_window_size, n_heads, head_dim, kv_cache.k_cache.dtype)


class QuantizedKVCache(nn.Module):
    """Integers of 8 bits with a scale and a zero point for each token and head.

    use_custom_update_cache_op  whether llama::update_cache writes, or assignments at positions
    return_float_values         whether `update` gives floats, those of new tokens as they came, or
                                the integers, for llama::custom_quantized_sdpa
    """

    def __init__(
        self,
        max_batch_size: int,
        max_context_length: int,
        n_heads: int,
        head_dim: int,
        cache_type: QuantizedCacheType = QuantizedCacheType.AffineAsymmetric,
        use_custom_update_cache_op: bool = False,
        return_float_values: bool = True,
    ) -> None:
        super().__init__()
        if cache_type is not QuantizedCacheType.AffineAsymmetric:
            raise ValueError(f"QuantizedKVCache: {cache_type}; AffineAsymmetric is there")
        self.cache_type, self.max_context_length = cache_type, max_context_length
        self.use_custom_update_cache_op = use_custom_update_cache_op
        self.return_float_values = return_float_values
        shape = (max_batch_size, max_context_length, n_heads)
        for name in ("k_cache", "v_cache"):
            values = torch.zeros((*shape, head_dim), dtype=torch.int8)
            self.register_buffer(name, values)
            self.register_buffer(f"{name}_scales", torch.ones((*shape, 1)))
            points = torch.ones((*shape, 1), dtype=torch.int8)
            self.register_buffer(f"{name}_zero_points", points)

    def update(
        self, input_pos: Tensor, k_val: Tensor, v_val: Tensor, indices: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `CustomKVCache.update`."""
        write = self._writer(input_pos, indices)
        k, v = (
            self._update(name, value.transpose(1, 2), write)
            for name, value in (("k_cache", k_val), ("v_cache", v_val))
        )
        return k.transpose(1, 2), v.transpose(1, 2)

    def _writer(self, positions: Tensor, slots: Tensor | None) -> Callable[[Tensor, Tensor], None]:
        if self.use_custom_update_cache_op:
            start = positions[0].item()
            return lambda cache, value: _write(cache, value, start, slots)
        at = positions if slots is None else slots[0]

        def assign(cache: Tensor, value: Tensor) -> None:
            torch.ops.aten.index_put_.default(cache, [None, at], value)

        return assign

    def _update(self, name: str, value: Tensor, write: Callable[[Tensor, Tensor], None]) -> Tensor:
        parts = [getattr(self, name + suffix) for suffix in ("", "_scales", "_zero_points")]
        for cache, part in zip(parts, quantized(value), strict=True):
            write(cache, part)
        if not self.return_float_values:
            return parts[0]
        integers, scales, points = parts
        floats: Tensor = torch.ops.quantized_decomposed.dequantize_per_token.default(
            *(integers, scales.double(), points.long(), -128, 127, torch.int8, torch.float32)
        )
        write(floats, value.float())
        return floats

    @classmethod
    def from_float(
        cls,
        kv_cache: KVCache | CustomKVCache,
        cache_type: QuantizedCacheType,
        use_custom_update_cache_op: bool = False,
    ) -> QuantizedKVCache:
        """An empty cache in the place of another one."""
        shape = (kv_cache.max_batch_size, kv_cache.max_context_length)
        heads = (kv_cache.n_heads, kv_cache.head_dim)
        return cls(*shape, *heads, cache_type, use_custom_update_cache_op)


class QuantizedRingKVCache(_SlidingWindow, QuantizedKVCache):  # type: ignore[misc]
    """A `QuantizedKVCache` with the slots of a window of `max_context_length` tokens."""

    @classmethod
    def from_quantized_kv_cache(
        cls, kv_cache: QuantizedKVCache, sliding_window_size: int
    ) -> QuantizedRingKVCache:
        batch, _, n_heads, head_dim = kv_cache.k_cache.shape
        options = (kv_cache.use_custom_update_cache_op, kv_cache.return_float_values)
        sizes = (batch, sliding_window_size, n_heads, head_dim)
        return cls(*sizes, kv_cache.cache_type, *options)


def _replace(module: nn.Module, make: Callable[[Any, nn.Module], nn.Module | None]) -> nn.Module:
    """Put `make(cache, holder)`, if it gives one, in the place of each cache of floats below."""
    for name, child in list(module.named_children()):
        if not isinstance(child, (KVCache, CustomKVCache, own.KVCache)):
            _replace(child, make)
        elif (replacement := make(child, module)) is not None:
            setattr(module, name, replacement)
    return module


def replace_kv_cache_with_custom_kv_cache(module: nn.Module) -> nn.Module:
    """Put empty caches that llama::update_cache writes in the place of others, in place."""

    def make(cache: Any, holder: nn.Module) -> nn.Module | None:
        if isinstance(cache, (CustomKVCache, own.CustomKVCache)):
            return None
        if isinstance(cache, own.KVCache):
            return own.CustomKVCache(cache.k_cache.shape, cache.k_cache.dtype)
        sizes = (cache.max_batch_size, cache.max_context_length, cache.n_heads, cache.head_dim)
        if not isinstance(cache, RingKVCache):
            return CustomKVCache(*sizes, cache.k_cache.dtype)
        _ask_for_mask(holder)
        batch, _, *heads = sizes
        return CustomRingKVCache(batch, cache.window_size, *heads, cache.k_cache.dtype)

    return _replace(module, make)


def replace_kv_cache_with_quantized_kv_cache(module: nn.Module) -> nn.Module:
    """Put empty caches of 8 bits in the place of those of floats, in place."""

    def make(cache: Any, _: nn.Module) -> nn.Module:
        if isinstance(cache, own.KVCache):
            return own.QuantizedKVCache(cache.k_cache.shape)
        return QuantizedKVCache.from_float(cache, QuantizedCacheType.AffineAsymmetric, True)

    return _replace(module, make)


def replace_kv_cache_with_ring_kv_cache(module: nn.Module, layer_sizes: Sequence[int]) -> nn.Module:
    """Let layers attend to a window of the text, in place.

    layer_sizes  the window of each of `module.layers`, 0 for all of the text; fewer are repeated
    """
    layers: Any = module.layers
    if not layer_sizes or len(layers) % len(layer_sizes):
        raise ValueError(
            f"layer_sizes: {len(layer_sizes)} windows for {len(layers)} layers; expected a number"
            " of windows that divides the layers"
        )
    for number, layer in enumerate(layers):
        window = layer_sizes[number % len(layer_sizes)]
        if window:
            layer.attention.kv_cache = _with_window(layer.attention.kv_cache, window)
            _ask_for_mask(layer.attention)
    return module


def _with_window(cache: Any, window: int) -> nn.Module:
    if isinstance(cache, QuantizedKVCache):
        return QuantizedRingKVCache.from_quantized_kv_cache(cache, window)
    if isinstance(cache, CustomKVCache):
        return CustomRingKVCache.from_custom_kv_cache(cache, window)
    heads = (cache.n_heads, cache.head_dim, cache.enable_dynamic_shape, cache.k_cache.dtype)
    return RingKVCache(cache.max_batch_size, window, *heads)


def _ask_for_mask(attention: Any) -> None:
    """An attention that could be causal by itself must read the mask of the cache, and the cache
    that it may hold for scales is that of its layer."""
    inner = getattr(attention, "SDPA", None)
    if hasattr(inner, "use_attention_mask"):
        inner.use_attention_mask = True
    if hasattr(inner, "kv_cache"):
        inner.kv_cache = attention.kv_cache
