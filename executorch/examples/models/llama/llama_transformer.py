"""A transformer in the manner of Llama, with or without caches of keys and values.

    tokens    int64 [1, tokens]
    input_pos int64, where they stand: [1], the first one's position, with a dynamic shape, else
              [tokens]. Only with caches.
    result    the last token's logits [1, vocabulary], or all with generate_full_logits:
              [1, tokens, vocabulary]

Parameters have the names of Meta's checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from executorch.examples.models.llama import rope
from executorch.examples.models.llama.kv_cache import (
    CustomKVCache,
    KVCache,
    QuantizedKVCache,
    quantized,
    shape_of,
)
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.extension.llm.custom_ops import custom_ops as custom_ops


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, computed in float."""

    def __init__(self, dim: int, eps: float, affine: bool = True, offset: bool = False) -> None:
        super().__init__()
        self.eps, self.offset = eps, 1.0 if offset else 0.0
        self.weight = nn.Parameter(torch.full((dim,), 1.0 - self.offset)) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        if self.weight is not None:
            y = y * (self.weight.float() + self.offset)
        return y.to(x.dtype)


class Places:
    """Where the tokens of one call stand: what all layers share."""

    def __init__(self, positions: Tensor, start: Any, cos: Tensor, sin: Tensor) -> None:
        self.positions, self.start, self.cos, self.sin = positions, start, cos, sin


class Attention(nn.Module):
    def __init__(self, args: ModelArgs, layer: int) -> None:
        super().__init__()
        assert args.n_kv_heads is not None and args.head_dim is not None
        self.heads, self.kv_heads, self.head_dim = args.n_heads, args.n_kv_heads, args.head_dim
        self.halves = args.use_hf_rope
        self.scale = args.attention_multiplier
        self.norm_first = args.qk_norm_before_rope
        interval = args.no_rope_layer_interval
        self.rotated = not (interval and (layer + 1) % interval == 0)
        bias = args.attention_qkv_bias
        self.wq = nn.Linear(args.dim, self.heads * self.head_dim, bias=bias)
        self.wk = nn.Linear(args.dim, self.kv_heads * self.head_dim, bias=bias)
        self.wv = nn.Linear(args.dim, self.kv_heads * self.head_dim, bias=bias)
        self.wo = nn.Linear(self.heads * self.head_dim, args.dim, bias=args.attention_output_bias)
        self.q_norm_fn: nn.Module | None = None
        self.k_norm_fn: nn.Module | None = None
        if args.use_qk_norm:
            self.q_norm_fn, self.k_norm_fn = (
                RMSNorm(
                    self.head_dim, args.norm_eps, args.qk_norm_affine, args.rms_norm_add_unit_offset
                )
                for _ in range(2)
            )
        self.kv_cache: nn.Module | None = None
        if args.use_kv_cache:
            kind: Any = CustomKVCache if args.use_sdpa_with_kv_cache_op else KVCache
            self.kv_cache = (QuantizedKVCache if args.quantize_kv_cache else kind)(shape_of(args))

    def forward(self, x: Tensor, places: Places) -> Tensor:
        q = self.wq(x).unflatten(-1, (self.heads, self.head_dim))
        k = self.wk(x).unflatten(-1, (self.kv_heads, self.head_dim))
        v = self.wv(x).unflatten(-1, (self.kv_heads, self.head_dim))
        q, k = self._placed(q, self.q_norm_fn, places), self._placed(k, self.k_norm_fn, places)
        return self.wo(self._attend(q, k, v, places).flatten(2))

    def _placed(self, x: Tensor, norm: nn.Module | None, places: Places) -> Tensor:
        if norm is not None and self.norm_first:
            x = norm(x)
        if self.rotated:
            x = rope.rotate(x, places.cos, places.sin, self.halves)
        return norm(x) if norm is not None and not self.norm_first else x

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, places: Places) -> Tensor:
        """All [1, tokens, heads, head_dim]."""
        cache = self.kv_cache
        if isinstance(cache, CustomKVCache):
            keys, values = cache.update_from(places.start, k, v)
            return torch.ops.llama.custom_sdpa(
                q, keys, values, places.start, None, 0.0, True, self.scale
            )
        if isinstance(cache, QuantizedKVCache):
            cache.update_from(places.start, k, v)
            rows, scales, zero_points = quantized(q)
            out = torch.ops.llama.custom_quantized_sdpa(
                rows,
                cache.k_cache,
                cache.v_cache,
                places.start,
                None,
                0.0,
                True,
                self.scale,
                zero_points,
                scales,
                cache.k_cache_zero_points,
                cache.k_cache_scales,
                cache.v_cache_zero_points,
                cache.v_cache_scales,
            )
            return out.to(q.dtype)
        mask = None
        if isinstance(cache, KVCache):
            k, v = cache.update(places.positions, k, v)
            mask = torch.arange(k.size(1)) <= places.positions[:, None]
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=mask is None, scale=self.scale, enable_gqa=True
        )
        return y.transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        assert args.hidden_dim is not None
        self.act_fn = args.act_fn.get_function()
        self.w1 = nn.Linear(args.dim, args.hidden_dim, bias=False)
        self.w2 = nn.Linear(args.hidden_dim, args.dim, bias=False)
        self.w3 = nn.Linear(args.dim, args.hidden_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(self.act_fn(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, args: ModelArgs, layer: int) -> None:
        super().__init__()

        def norm() -> RMSNorm:
            return RMSNorm(args.dim, args.norm_eps, offset=args.rms_norm_add_unit_offset)

        self.attention = Attention(args, layer)
        self.feed_forward = FeedForward(args)
        self.attention_norm, self.ffn_norm = norm(), norm()
        self.post_attention_norm = norm() if args.post_attention_norm else None
        self.post_ffn_norm = norm() if args.post_ffn_norm else None
        self.multiplier = args.residual_multiplier

    def forward(self, x: Tensor, places: Places) -> Tensor:
        y = self.attention(self.attention_norm(x), places)
        x = self._add(x, y, self.post_attention_norm)
        return self._add(x, self.feed_forward(self.ffn_norm(x)), self.post_ffn_norm)

    def _add(self, x: Tensor, y: Tensor, norm: nn.Module | None) -> Tensor:
        y = y if norm is None else norm(y)
        return x + (y if self.multiplier is None else y * self.multiplier)


class Transformer(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.params = args
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(TransformerBlock(args, i) for i in range(args.n_layers))
        self.norm = RMSNorm(args.dim, args.norm_eps, offset=args.rms_norm_add_unit_offset)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=args.output_bias)
        if args.tie_word_embeddings:
            self.output.weight = self.tok_embeddings.weight
        cos, sin = rope.tables(args)
        self.register_buffer("freqs_cos", cos, persistent=False)
        self.register_buffer("freqs_sin", sin, persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Transformer:
        """Another type for weights and caches; angles and scales stay as exact as they are."""
        exact = [
            (module, name, buffer)
            for module in self.modules()
            for name, buffer in module.named_buffers(recurse=False)
            if name.startswith("freqs_") or name.endswith("_scales")
        ]
        super()._apply(fn, recurse)
        for module, name, buffer in exact:
            setattr(module, name, buffer)
        return self

    def forward(
        self, tokens: Tensor, attn_options: Mapping[str, Tensor] | Tensor | None = None
    ) -> Tensor:
        """`attn_options`: {"input_pos": positions}, or the positions themselves."""
        input_pos: Any = attn_options
        if isinstance(attn_options, Mapping):
            input_pos = attn_options.get("input_pos")
        places = self._places(tokens.size(1), input_pos)
        x = self.tok_embeddings(tokens)
        if self.params.embedding_scale_factor != 1.0:
            x = x * self.params.embedding_scale_factor
        for layer in self.layers:
            x = layer(x, places)
        if not self.params.generate_full_logits:
            x = x[:, -1]
        logits = self.output(self.norm(x))
        scaling = self.params.logits_scaling
        return logits if scaling is None else logits / scaling

    def _places(self, n: Any, input_pos: Tensor | None) -> Places:
        if not self.params.use_kv_cache:
            return Places(torch.arange(n), 0, self.freqs_cos[:n], self.freqs_sin[:n])
        if input_pos is None:
            raise ValueError("a model with caches needs input_pos, the position of the first token")
        start: Any = None
        caches = [layer.attention.kv_cache for layer in self.layers]
        if any(isinstance(cache, (CustomKVCache, QuantizedKVCache)) for cache in caches):
            start = input_pos[0].item()
            torch._check(start >= 0)
            torch._check(start + n <= self.params.max_context_len)
        positions = input_pos
        if self.params.enable_dynamic_shape:
            positions = input_pos[:1] + torch.arange(n)
        return Places(positions, start, self.freqs_cos[positions], self.freqs_sin[positions])


def initialize(model: nn.Module, seed: int = 0) -> None:
    """Random weights of the usual size, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                width = 0.02 if "tok_embeddings" in name else 1 / math.sqrt(parameter.size(1))
                parameter.normal_(0, width, generator=generator)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.02, generator=generator)


def construct_transformer(args: ModelArgs) -> Transformer:
    return Transformer(args)
