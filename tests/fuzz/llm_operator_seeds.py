"""Calls of the operators of language models, which tests/ops has no samples of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from executorch.extension.llm.custom_ops import custom_ops, preprocess_custom_ops  # noqa: F401
from executorch.extension.llm.custom_ops.packed_linear import pack_linear
from tests.ops.oracle import packet_of
from tests.ops.program import Call
from tests.ops.samples import Maker

CAPACITY, DIM = 8, 4


def llm_calls(name: str) -> Iterator[tuple[str, Call]]:
    """Calls of `name`, an operator with `.out`, with what tells them apart."""
    short = name.partition("::")[2].removesuffix(".out")
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8):
        made = _arguments(short, Maker(dtype), dtype)
        for i, (args, written) in enumerate(made):
            copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
            results = packet_of(name).default(*copies)
            outs = [results] if isinstance(results, torch.Tensor) else list(results)
            changed = [copies[place] for place in written]
            label = f"{str(dtype).removeprefix('torch.')}--{i}"
            yield label, Call(name, args, [*changed, *outs], written)


def _arguments(
    short: str, m: Maker, dtype: torch.dtype
) -> Iterator[tuple[list[Any], tuple[int, ...]]]:
    """Arguments in the order of the schema, and the places of those that are written."""
    attention = [None, 0.0, True, None]
    value, cache = m(1, 3, 2, DIM), m(1, CAPACITY, 2, DIM)
    query, mask = m(1, 3, 4, DIM), torch.zeros(3, CAPACITY)
    if short == "update_cache":
        yield [value, cache, 2], (1,)
    elif short == "update_cache_with_indices":
        yield [value, cache, 0, torch.tensor([[4, 0, 7]])], (1,)
    elif short == "fallback":
        yield [value], ()
    elif short == "custom_quantized_sdpa" and dtype == torch.int8:
        yield [query, cache, cache, 2, *attention, *_scales(query, cache, cache), False], ()
        across = [t.transpose(1, 2).contiguous() for t in (query, cache, cache)]
        yield [*across, 2, mask, 0.0, False, 0.5, *_scales(*across), True], ()
    elif dtype == torch.int8:
        return
    elif short == "custom_sdpa":
        yield [query, cache, cache, 2, *attention], ()
        yield [query, cache, cache, 5, mask, 0.0, False, 0.25], ()
    elif short == "sdpa_with_kv_cache":
        yield [query, value, value, cache, cache, 2, 3, *attention], (3, 4)
    elif short == "fast_hadamard_transform":
        for width in (16, 28):  # a power of two, and one with a factor of its own
            yield [m(3, width)], ()
    elif dtype != torch.float32:
        return
    elif short in ("gated_delta_rule", "channelwise_gated_delta_rule"):
        keys = [m(1, 2, 5, DIM) for _ in range(2)]
        values, decay, beta = m(1, 2, 5, 6), torch.rand(1, 2, 5, DIM), torch.rand(1, 2, 5)
        yield [*keys, values, decay, beta, m(1, 2, DIM, 6)], ()
        # Two heads of queries for a state, and one decay for all of its rows.
        queries, decay = m(1, 4, 5, DIM), torch.rand(1, 2, 5)
        yield [queries, keys[1], values, decay, beta, m(1, 2, DIM, 6)], ()
    elif short == "quantized_moe_ffn":
        for bits, score in ((4, "sigmoid"), (8, "softmax")):
            bias = m(3) if score == "sigmoid" else torch.empty(0)
            weights = [_packed_experts(rows, bits) for rows in (32, 16)]
            yield [m(4, 16), m(3, 16), bias, *weights, 2, 3, 16, 16, 16, bits, score, 1.5], ()
    elif short == "tile_crop":
        yield [m(3, 8, 12), 4], ()


def _packed_experts(rows: int, bits: int) -> torch.Tensor:
    """Three layers of 16 columns."""
    layers = []
    for _ in range(3):
        q = torch.randint(-8, 8, (rows, 16), dtype=torch.int8)
        layers.append(pack_linear(q, torch.rand(rows), 16, bits))
    return torch.stack(layers)


def _scales(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """A zero point and a scale for each row of each tensor, as the operator takes them."""
    rows = [(*t.shape[:3], 1) for t in tensors]
    pairs = [(torch.zeros(r, dtype=torch.int8), torch.full(r, 0.03)) for r in rows]
    return [t for pair in pairs for t in pair]
