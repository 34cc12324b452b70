"""Operators over caches of keys and values, `torch.ops.llama`. Importing this module registers
them, functional and `.out`, with an eager form in PyTorch; programs call the kernels that are here.

    update_cache(value, cache, start_pos)                 cache[:, start_pos + t] = value[:, t]
    update_cache_with_indices(value, cache, start_pos, indices)      cache[b, indices[b, t]] = ...
    custom_sdpa(query, key, value, start_pos, attn_mask, 0.0, is_causal, scale)
    sdpa_with_kv_cache(query, key, value, key_cache, value_cache, start_pos, seq_len, ...)
    custom_quantized_sdpa(...)       custom_sdpa over int8 keys and values with a scale per row
    fast_hadamard_transform(mat)     gated_delta_rule(query, key, value, decay, beta, state)
    quantized_moe_ffn(...)           experts whose weights `packed_linear` packs; see op_moe.h

And `torch.ops.executorch`, for models whose keys and values of an encoder are computed once, in a
branch of `torch.cond`; programs get plain writes and copies in their place:

    update_cross_attn_cache(value, cache)    cache[:, :, t] = value[:, :, t]; a copy of the cache
    alias(x, y)                              both as they are

Queries, keys and values are [batch, tokens, heads, dim], caches [batch, capacity, heads, dim].
`op_sdpa.h` says what each computes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import Library

from executorch.exir.torch_internals import all_operator_names
from executorch.extension.llm.custom_ops import eager
from executorch.extension.llm.custom_ops.eager import quantized_moe_ffn_meta
from executorch.extension.llm.custom_ops.library import define

custom_ops_lib = Library("llama", "FRAGMENT")
executorch_lib = Library("executorch", "FRAGMENT")

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_ATTENTION = (
    "SymInt start_pos, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, "
    "float? scale=None"
)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _check_positions(start_pos: Any, tokens: Any, capacity: Any) -> None:
    """Numbers are checked here; what is only known when the program runs, by its kernels."""
    torch._check(start_pos >= 0, lambda: f"start_pos is {start_pos}")
    torch._check(
        start_pos + tokens <= capacity,
        lambda: f"{tokens} tokens from position {start_pos} on exceed a cache of {capacity}",
    )


def _check_heads(query: Tensor, key: Tensor, value: Tensor, heads_dim: int = 2) -> None:
    shapes = f"queries {list(query.shape)}, keys {list(key.shape)}, values {list(value.shape)}"
    _require(query.dim() == key.dim() == value.dim() == 4, f"4 dimensions are expected: {shapes}")
    heads, kv_heads = query.size(heads_dim), key.size(heads_dim)
    _require(key.shape == value.shape, f"keys and values differ: {shapes}")
    _require(query.size(3) == key.size(3), f"dim differs: {shapes}")
    _require(kv_heads > 0 and heads % kv_heads == 0, f"heads do not divide: {shapes}")


def _check_mask(mask: Tensor | None, dtype: torch.dtype, is_causal: bool) -> None:
    if mask is None:
        return
    _require(not is_causal, "attn_mask or is_causal, not both")
    _require(mask.dim() == 2, f"attn_mask [tokens, keys] is expected, not {list(mask.shape)}")
    _require(
        mask.dtype in (torch.float32, torch.bool, dtype),
        f"attn_mask of float32, bool or {dtype} is expected, not {mask.dtype}",
    )


def sdpa_with_kv_cache_meta(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    start_pos: Any,
    seq_len: Any,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    _check_update(key, key_cache)
    _check_update(value, value_cache)
    return custom_sdpa(
        query, key_cache, value_cache, start_pos, attn_mask, drpout_p, is_causal, scale
    )


def custom_sdpa(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    start_pos: Any,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    _check_heads(query, key_cache, value_cache)
    _require(
        query.dtype in _FLOATS and key_cache.dtype == value_cache.dtype == query.dtype,
        f"queries, keys and values of one float type, not {query.dtype} and {key_cache.dtype}",
    )
    _check_mask(attn_mask, query.dtype, is_causal)
    _check_positions(start_pos, query.size(1), key_cache.size(1))
    return torch.empty_like(query, memory_format=torch.contiguous_format)


def custom_quantized_sdpa_meta(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: Any,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    q_zero_point: Tensor | None = None,
    q_scale: Tensor | None = None,
    k_zero_point: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_zero_point: Tensor | None = None,
    v_scale: Tensor | None = None,
    is_seq_at_dim_2: bool = False,
) -> Tensor:
    tokens_dim = 2 if is_seq_at_dim_2 else 1
    _check_heads(query, key, value, heads_dim=3 - tokens_dim)
    given = {
        "queries": (query, q_scale, q_zero_point),
        "keys": (key, k_scale, k_zero_point),
        "values": (value, v_scale, v_zero_point),
    }
    for name, (tensor, scales, zero_points) in given.items():
        if name == "queries" and tensor.dtype in _FLOATS:
            continue
        _require(tensor.dtype == torch.int8, f"{name} of int8 are expected, not {tensor.dtype}")
        if scales is None or zero_points is None:
            raise ValueError(f"{name} of int8 need scales and zero points")
        rows = (*tensor.shape[:3], 1)
        _require(
            scales.shape == zero_points.shape == rows
            and scales.dtype == torch.float32
            and zero_points.dtype == torch.int8,
            f"scales of float32 and zero points of int8 of shape {list(rows)} are expected for "
            f"{name}",
        )
    _check_mask(attn_mask, torch.float32, is_causal)
    _check_positions(start_pos, query.size(tokens_dim), key.size(tokens_dim))
    return torch.empty(query.shape, dtype=torch.float32, device=query.device)


def _check_update(value: Tensor, cache: Tensor) -> None:
    shapes = f"values {list(value.shape)} and cache {list(cache.shape)}"
    _require(value.dim() == cache.dim() == 4, f"4 dimensions are expected: {shapes}")
    for i in (0, 2, 3):
        _require(value.size(i) == cache.size(i), f"dimension {i} differs: {shapes}")
    _require(value.dtype == cache.dtype, f"{value.dtype} into a cache of {cache.dtype}")


def update_cache_meta(value: Tensor, cache: Tensor, start_pos: Any) -> Tensor:
    _check_update(value, cache)
    _check_positions(start_pos, value.size(1), cache.size(1))
    return value.new_empty(1)


def update_cache_with_indices_meta(
    value: Tensor, cache: Tensor, start_pos: Any, indices: Tensor
) -> Tensor:
    _check_update(value, cache)
    _require(
        indices.dim() == 2
        and indices.dtype == torch.int64
        and indices.size(0) == value.size(0)
        and indices.size(1) == value.size(1),
        f"indices [batch, tokens] of int64 are expected, not {list(indices.shape)} of "
        f"{indices.dtype}",
    )
    return value.new_empty(1)


def fast_hadamard_transform_meta(mat: Tensor) -> Tensor:
    return torch.empty_like(mat)


def gated_delta_rule_meta(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    eager.check_gated_delta_rule(query, key, value, decay, beta, initial_state)
    out = query.new_empty((*query.shape[:3], value.size(3)))
    return out, torch.empty_like(initial_state)


channelwise_gated_delta_rule_meta = gated_delta_rule_meta

for _inputs, _compute, _fake in [
    (
        "sdpa_with_kv_cache(Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, "
        "Tensor(b!) value_cache, SymInt start_pos, SymInt seq_len, "
        + _ATTENTION.partition(", ")[2]
        + ")",
        eager.sdpa_with_kv_cache,
        sdpa_with_kv_cache_meta,
    ),
    (
        f"custom_sdpa(Tensor query, Tensor key, Tensor value, {_ATTENTION})",
        eager.custom_sdpa,
        custom_sdpa,
    ),
    (
        f"custom_quantized_sdpa(Tensor query, Tensor key, Tensor value, {_ATTENTION}, "
        + ", ".join(f"Tensor? {x}_zero_points=None, Tensor? {x}_scales=None" for x in "qkv")
        + ", bool is_seq_at_dim_2=False)",
        eager.custom_quantized_sdpa,
        custom_quantized_sdpa_meta,
    ),
    (
        "update_cache(Tensor value, Tensor(a!) cache, SymInt start_pos)",
        eager.update_cache,
        update_cache_meta,
    ),
    (
        "update_cache_with_indices(Tensor value, Tensor(a!) cache, SymInt start_pos, "
        "Tensor indices)",
        eager.update_cache_with_indices,
        update_cache_with_indices_meta,
    ),
    (
        "fast_hadamard_transform(Tensor mat)",
        eager.fast_hadamard_transform,
        fast_hadamard_transform_meta,
    ),
]:
    define(custom_ops_lib, _inputs, _compute, _fake)

for _name in ("gated_delta_rule", "channelwise_gated_delta_rule"):
    define(
        custom_ops_lib,
        f"{_name}(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, "
        "Tensor initial_state)",
        eager.gated_delta_rule,
        gated_delta_rule_meta,
        n_results=2,
        outs=("out", "final_state_out"),
    )


define(
    custom_ops_lib,
    "quantized_moe_ffn(Tensor x, Tensor gate_weight, Tensor expert_bias, Tensor packed_w13, "
    "Tensor packed_w2, int num_activated_experts, int num_experts, int hidden_dim, int dim, "
    "int group_size, int weight_nbit, str score_func, float route_scale)",
    eager.quantized_moe_ffn,
    quantized_moe_ffn_meta,
)
if "llama::_quantized_moe_ffn_active" not in all_operator_names():
    custom_ops_lib.define("_quantized_moe_ffn_active() -> bool")
    custom_ops_lib.impl("_quantized_moe_ffn_active", lambda: True, "CompositeExplicitAutograd")
define(custom_ops_lib, "fallback(Tensor input)", eager.fallback, torch.empty_like, outs=("output",))


def custom_alias(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.ops.executorch.alias.default(x, y)  # type: ignore[no-any-return]


def _cross_attn_cache_meta(value: Tensor, cache: Tensor) -> Tensor:
    eager.check_cross_attn_cache(value, cache)
    return torch.empty_like(cache)


define(
    executorch_lib,
    "alias(Tensor x, Tensor y)",
    lambda x, y: (x, y),
    lambda x, y: (torch.empty_like(x), torch.empty_like(y)),
    n_results=2,
    outs=(),
)
define(
    executorch_lib,
    "update_cross_attn_cache(Tensor value, Tensor cache)",
    eager.update_cross_attn_cache,
    _cross_attn_cache_meta,
    outs=(),
)
