"""Positions as rotations: pairs of numbers of a head are rotated, further for later tokens.

angle[p, i] = p * base^(-2i / n),  i in [0, n / 2) for the n numbers of a head that are rotated
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from executorch.examples.models.llama.model_args import ModelArgs


def frequencies(args: ModelArgs) -> tuple[Tensor, float]:
    """The turn of each pair per position, and the factor by which results grow."""
    n = args.rotary_dim
    turns = args.rope_freq_base ** -(torch.arange(0, n, 2, dtype=torch.float64) / n)
    if args.use_scaled_rope:
        return _scaled(turns, args), 1.0
    if args.rope_scaling_short_factor is None:
        return turns, 1.0
    original = args.original_max_position_embeddings or args.max_context_len
    long = args.max_context_len > original
    factors = args.rope_scaling_long_factor if long else args.rope_scaling_short_factor
    if factors is None or len(factors) != n // 2:
        raise ValueError(f"params: {n // 2} rope scaling factors were expected")
    growth = args.rope_scaling_attention_factor
    if growth is None:
        longest = args.max_position_embeddings or original
        ratio = longest / original
        growth = math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0
    return turns / torch.tensor(factors, dtype=torch.float64), growth


def _scaled(turns: Tensor, args: ModelArgs) -> Tensor:
    """Llama 3.1: waves longer than the original context are stretched, those a few times shorter
    stay, and in between it goes over smoothly."""
    original = args.original_max_position_embeddings or 8192
    waves = original * turns / (2 * math.pi)  # in the original context
    low, high = args.low_freq_factor, args.high_freq_factor
    keep = ((waves - low) / (high - low)).clamp(0, 1)
    return turns * (keep + (1 - keep) / args.rope_scale_factor)


def tables(args: ModelArgs) -> tuple[Tensor, Tensor]:
    """Cosines and sines [max_context_len, rotary_dim / 2], float."""
    turns, growth = frequencies(args)
    angles = torch.arange(args.max_context_len, dtype=torch.float64)[:, None] * turns
    return (angles.cos() * growth).float(), (angles.sin() * growth).float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor, halves: bool) -> Tensor:
    """x [batch, tokens, heads, head_dim], rotated by cos and sin [tokens, rotary_dim / 2]: numbers
    i and i + rotary_dim / 2 form a pair if `halves`, else 2i and 2i + 1."""
    rotary = 2 * cos.size(-1)
    cos, sin = cos[:, None], sin[:, None]
    rotated, rest = x[..., :rotary].float(), x[..., rotary:]
    if halves:
        a, b = rotated[..., : rotary // 2], rotated[..., rotary // 2 :]
        y = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        pairs = rotated.unflatten(-1, (rotary // 2, 2))
        a, b = pairs[..., 0], pairs[..., 1]
        y = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    y = y.to(x.dtype)
    return y if rotary == x.size(-1) else torch.cat([y, rest], -1)
