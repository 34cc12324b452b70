"""What the operators of `custom_ops` compute, in PyTorch: their eager form, and what the kernels
are compared with.

Layouts are [batch, tokens, heads, dim] for queries, keys and values, [batch, capacity, heads, dim]
for caches.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from executorch.extension.llm.custom_ops.packed_linear import unpack_linear


def check_positions(start_pos: int, tokens: int, capacity: int) -> None:
    if start_pos < 0 or start_pos + tokens > capacity:
        raise ValueError(
            f"{tokens} tokens from position {start_pos} on do not fit into a cache of {capacity} "
            "positions"
        )


def update_cache(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    check_positions(start_pos, value.size(1), cache.size(1))
    cache[:, start_pos : start_pos + value.size(1)] = value
    return value.new_zeros(1)


def update_cache_with_indices(
    value: Tensor, cache: Tensor, start_pos: int, indices: Tensor
) -> Tensor:
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < cache.size(1):
        raise IndexError(f"indices outside of a cache of {cache.size(1)} positions")
    for token in range(value.size(1)):  # in order: of equal indices the last holds
        cache[torch.arange(value.size(0)), indices[:, token]] = value[:, token]
    return value.new_zeros(1)


def check_cross_attn_cache(value: Tensor, cache: Tensor) -> None:
    fits = value.dim() == cache.dim() == 4 and all(
        value.size(i) == cache.size(i) if i != 2 else value.size(i) <= cache.size(i)
        for i in range(4)
    )
    if not fits:
        raise ValueError(
            f"values {list(value.shape)} do not fit a cache {list(cache.shape)} of [batch, heads, "
            "capacity, dim]"
        )
    if value.dtype != cache.dtype:
        raise ValueError(f"{value.dtype} into a cache of {cache.dtype}")


def update_cross_attn_cache(value: Tensor, cache: Tensor) -> Tensor:
    check_cross_attn_cache(value, cache)
    with torch.no_grad():
        cache[:, :, : value.size(2)].copy_(value)
        return cache.clone()


def custom_sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    tokens = query.size(1)
    check_positions(start_pos, tokens, key.size(1))
    if attn_mask is not None and is_causal:
        raise ValueError("custom_sdpa: a mask or is_causal, not both")
    keys = start_pos + tokens if attn_mask is None else attn_mask.size(1)
    scores = _scores(query, key[:, :keys], scale)
    if is_causal:
        later = torch.arange(keys) > torch.arange(tokens).unsqueeze(1) + start_pos
        scores = scores.masked_fill(later, -math.inf)
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    # A row that sees nothing gives zeros.
    weights = torch.softmax(scores, -1).nan_to_num(0.0) if keys else scores
    groups = query.size(2) // value.size(2)
    values = value[:, :keys].transpose(1, 2).repeat_interleave(groups, 1).to(weights.dtype)
    return (weights @ values).transpose(1, 2).to(query.dtype).contiguous()


def _scores(query: Tensor, key: Tensor, scale: float | None) -> Tensor:
    """[batch, heads, tokens, keys] in float."""
    scale = 1 / math.sqrt(query.size(3)) if scale is None else scale
    groups = query.size(2) // key.size(2)
    keys = key.transpose(1, 2).repeat_interleave(groups, 1).float()
    return query.transpose(1, 2).float() @ keys.transpose(2, 3) * scale


def sdpa_with_kv_cache(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    start_pos: int,
    seq_len: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    if seq_len != query.size(1):
        raise ValueError(f"seq_len is {seq_len}, but there are {query.size(1)} queries")
    update_cache(key, key_cache, start_pos)
    update_cache(value, value_cache, start_pos)
    return custom_sdpa(
        query, key_cache, value_cache, start_pos, attn_mask, drpout_p, is_causal, scale
    )


def custom_quantized_sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    q_zero_points: Tensor | None = None,
    q_scales: Tensor | None = None,
    k_zero_points: Tensor | None = None,
    k_scales: Tensor | None = None,
    v_zero_points: Tensor | None = None,
    v_scales: Tensor | None = None,
    is_seq_at_dim_2: bool = False,
) -> Tensor:
    def rows(t: Tensor, zero_points: Tensor | None, scales: Tensor | None) -> Tensor:
        if scales is not None and zero_points is not None:
            t = (t.float() - zero_points) * scales
        return t.float().transpose(1, 2) if is_seq_at_dim_2 else t.float()

    out = custom_sdpa(
        rows(query, q_zero_points, q_scales),
        rows(key, k_zero_points, k_scales),
        rows(value, v_zero_points, v_scales),
        start_pos,
        attn_mask,
        drpout_p,
        is_causal,
        scale,
    )
    return out.transpose(1, 2).contiguous() if is_seq_at_dim_2 else out


# The Hadamard matrix of order 28 as 4 x 4 circulant blocks of order 7: bit c of a block's number
# says whether column c of its first row is +1; each further row is rotated one place to the right.
_BLOCKS = [
    [0x01, 0x3C, 0x5A, 0x66],
    [0x43, 0x01, 0x19, 0x5A],
    [0x25, 0x66, 0x01, 0x43],
    [0x19, 0x25, 0x3C, 0x01],
]


def _hadamard_28() -> Tensor:
    def block(bits: int) -> Tensor:
        first = torch.tensor([1.0 if bits >> c & 1 else -1.0 for c in range(7)])
        return torch.stack([first.roll(r) for r in range(7)])

    return torch.cat([torch.cat([block(b) for b in row], 1) for row in _BLOCKS])


def fast_hadamard_transform(mat: Tensor) -> Tensor:
    n = mat.size(-1)
    odd = 28 if n % 28 == 0 and n > 0 else 1
    power = n // odd
    if power < 1 or power & (power - 1):
        raise ValueError(f"rows of 2^m or 28 * 2^m numbers are transformed, not of {n}")
    x = mat.float().reshape(-1, odd, power)
    half = 1
    while half < power:
        pairs = x.reshape(-1, odd, power // (2 * half), 2, half)
        a, b = pairs.unbind(3)
        x = torch.stack([a + b, a - b], 3).reshape(-1, odd, power)
        half *= 2
    x = x / math.sqrt(power)
    if odd == 28:
        x = _hadamard_28().T @ x
    return x.reshape(mat.shape).to(mat.dtype)


def check_gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, initial_state: Tensor
) -> None:
    given = {
        "queries": query,
        "keys": key,
        "values": value,
        "decay": decay,
        "beta": beta,
        "state": initial_state,
    }
    for name, tensor in given.items():
        if tensor.dtype != torch.float32:
            raise RuntimeError(f"{name} of float32 are expected, not of {tensor.dtype}")
    if not query.dim() == key.dim() == value.dim() == 4 or decay.dim() not in (3, 4):
        fits = False
    else:
        batch, heads, tokens, dim = query.shape
        state_heads = key.size(1)
        fits = (
            key.shape == (batch, state_heads, tokens, dim)
            and value.shape[:3] == beta.shape == key.shape[:3]
            and decay.shape == key.shape[: decay.dim()]
            and initial_state.shape == (batch, state_heads, dim, value.size(3))
            and (heads % state_heads == 0 if state_heads else heads == 0)
        )
    if not fits:
        shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in given.items())
        raise RuntimeError(f"gated_delta_rule: shapes that do not fit: {shapes}")


def gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, initial_state: Tensor
) -> tuple[Tensor, Tensor]:
    check_gated_delta_rule(query, key, value, decay, beta, initial_state)
    state = initial_state.clone()
    batch, heads, tokens, dim = query.shape
    state_heads = key.size(1)
    groups = query.reshape(batch, state_heads, heads // max(state_heads, 1), tokens, dim)
    out = value.new_empty((*groups.shape[:4], value.size(3)))
    if decay.dim() == 3:
        decay = decay[..., None]
    for t in range(tokens):
        state = state * decay[:, :, t, :, None]
        predicted = torch.einsum("bhkv,bhk->bhv", state, key[:, :, t])
        delta = beta[:, :, t, None] * (value[:, :, t] - predicted)
        state = state + key[:, :, t, :, None] * delta[:, :, None, :]
        out[:, :, :, t] = torch.einsum("bhkv,bhgk->bhgv", state, groups[:, :, :, t])
    return out.reshape(batch, heads, tokens, value.size(3)), state


def quantized_moe_ffn_meta(
    x: Tensor,
    gate_weight: Tensor,
    expert_bias: Tensor,
    packed_w13: Tensor,
    packed_w2: Tensor,
    num_activated_experts: int,
    num_experts: int,
    hidden_dim: int,
    dim: int,
    group_size: int,
    weight_nbit: int,
    score_func: str,
    route_scale: float,
) -> Tensor:
    """The form of the result; AssertionError for what the kernel refuses, but for the bytes of the
    weights."""

    def require(condition: bool, message: str) -> None:
        if not condition:
            raise AssertionError(f"quantized_moe_ffn: {message}")

    given = {"x": x, "gate_weight": gate_weight, "expert_bias": expert_bias}
    for name, tensor in given.items():
        require(tensor.dtype == torch.float32, f"{name} of float32 is expected, not {tensor.dtype}")
    shape = list(x.shape)
    require(dim > 0 and len(shape) == 2 and shape[1] == dim, f"x [tokens, {dim}], not {shape}")
    shape = list(gate_weight.shape)
    require(shape == [num_experts, dim], f"gate_weight [{num_experts}, {dim}], not {shape}")
    shape = list(expert_bias.shape)
    require(
        expert_bias.numel() == 0 or (shape == [num_experts] and score_func == "sigmoid"),
        f"an empty expert_bias, or [{num_experts}] with sigmoid, not {shape} with {score_func}",
    )
    for name, tensor in {"packed_w13": packed_w13, "packed_w2": packed_w2}.items():
        require(
            tensor.dtype == torch.uint8 and tensor.dim() == 2 and tensor.size(0) == num_experts,
            f"{name} of uint8 [{num_experts}, bytes], not of {tensor.dtype} {list(tensor.shape)}",
        )
    require(
        0 < num_activated_experts <= num_experts,
        f"num_activated_experts {num_activated_experts} of {num_experts}",
    )
    require(score_func in ("sigmoid", "softmax"), f"score_func {score_func!r}")
    require(weight_nbit in (4, 8), f"weight_nbit 4 or 8, not {weight_nbit}")
    require(
        group_size > 0
        and hidden_dim > 0
        and group_size % 16 == dim % group_size == hidden_dim % group_size == 0,
        f"group_size, a multiple of 16 that divides {dim} and {hidden_dim}, not {group_size}",
    )
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def quantized_moe_ffn(
    x: Tensor,
    gate_weight: Tensor,
    expert_bias: Tensor,
    packed_w13: Tensor,
    packed_w2: Tensor,
    num_activated_experts: int,
    num_experts: int,
    hidden_dim: int,
    dim: int,
    group_size: int,
    weight_nbit: int,
    score_func: str,
    route_scale: float,
) -> Tensor:
    sizes = (num_activated_experts, num_experts, hidden_dim, dim, group_size, weight_nbit)
    quantized_moe_ffn_meta(
        x, gate_weight, expert_bias, packed_w13, packed_w2, *sizes, score_func, route_scale
    )
    scores = x @ gate_weight.T
    if score_func == "sigmoid":
        scores = scores.sigmoid()
    ranks = scores + expert_bias if expert_bias.numel() else scores
    # Of equal ones the first; NaNs last.
    known = torch.where(ranks.isnan(), -math.inf, ranks)
    order = known.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, ranks.isnan().gather(1, order).int().argsort(dim=1, stable=True))
    chosen = order[:, :num_activated_experts]
    shares = scores.gather(1, chosen)
    if score_func == "sigmoid":
        tiny = torch.finfo(torch.float32).tiny
        shares = shares / shares.sum(1, keepdim=True).clamp_min(tiny) * route_scale
    else:
        shares = shares.softmax(1)
    out = torch.zeros_like(x)
    for expert in chosen.unique().tolist():
        token, place = (chosen == expert).nonzero(as_tuple=True)
        layer = (group_size, weight_nbit)
        w1, w3 = unpack_linear(packed_w13[expert], 2 * hidden_dim, dim, *layer).chunk(2)
        w2 = unpack_linear(packed_w2[expert], dim, hidden_dim, *layer)
        hidden = torch.nn.functional.silu(x[token] @ w1.T) * (x[token] @ w3.T)
        out.index_add_(0, token, hidden @ w2.T * shares[token, place, None])
    return out


def fallback(input: Tensor) -> Tensor:
    return input.clone()


def tile_crop(input: Tensor, tile_size: int) -> Tensor:
    channels, height, width = input.shape
    if tile_size < 1 or height % tile_size or width % tile_size:
        raise ValueError(f"{height} x {width} pixels do not divide into tiles of {tile_size}")
    down, across = height // tile_size, width // tile_size
    tiles = input.reshape(channels, down, tile_size, across, tile_size).permute(1, 3, 0, 2, 4)
    return tiles.reshape(down * across, channels, tile_size, tile_size).contiguous()
