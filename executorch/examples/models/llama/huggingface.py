"""Models as Hugging Face's classes store them: config.json and names of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from executorch.examples.models.llama.model_args import ModelArgs

_NAMES = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "vocab_size": "vocab_size",
    "intermediate_size": "hidden_dim",
    "rms_norm_eps": "norm_eps",
    "head_dim": "head_dim",
    "rope_theta": "rope_theta",
    "partial_rotary_factor": "partial_rotary_factor",
    "tie_word_embeddings": "tie_word_embeddings",
    "no_rope_layer_interval": "no_rope_layer_interval",
    "original_max_position_embeddings": "original_max_position_embeddings",
    "max_position_embeddings": "max_position_embeddings",
}
_FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "phi3", "smollm3")


def params_from_config(config: Mapping[str, Any], max_context_len: int) -> dict[str, Any]:
    """params.json of a config.json, for texts of up to `max_context_len` tokens. ValueError for a
    variant that is not here."""
    family = config.get("model_type")
    if family not in _FAMILIES:
        raise ValueError(
            f"config.json: model_type {family!r} is not supported; expected one of "
            f"{', '.join(_FAMILIES)}. Any causal model can be exported by executorch.exir."
        )
    params = {
        ours: config[theirs] for theirs, ours in _NAMES.items() if config.get(theirs) is not None
    }
    activation = config.get("hidden_act", "silu")
    if activation not in ("silu", "gelu", "gelu_pytorch_tanh"):
        raise ValueError(f"config.json: hidden_act {activation!r} is not supported")
    params["act_fn"] = "gelu_approx" if activation == "gelu_pytorch_tanh" else activation
    if config.get("mlp_bias"):
        raise ValueError("config.json: mlp_bias is not supported")
    _require_full_attention(config, family, max_context_len)
    _require_regular_rotation(config)
    params["use_hf_rope"] = True
    params["attention_qkv_bias"] = bool(config.get("attention_bias", family == "qwen2"))
    params["attention_output_bias"] = bool(config.get("attention_bias"))
    params["use_qk_norm"] = params["qk_norm_before_rope"] = family == "qwen3"
    scaling = {**(config.get("rope_parameters") or {}), **(config.get("rope_scaling") or {})}
    params.update(_rope(scaling))
    return params


def _require_full_attention(config: Mapping[str, Any], family: str, max_context_len: int) -> None:
    """A window of as many tokens as a text may have is no window."""
    window, layers = config.get("sliding_window"), config.get("layer_types")
    slides = config.get("use_sliding_window", family in ("mistral", "phi3"))
    if layers is not None:
        slides = "sliding_attention" in layers
    if slides and window is not None and window < max_context_len:
        raise ValueError(
            f"config.json: sliding_window is {window}, and layers that attend to a window are not "
            f"supported in longer texts: export.max_context_length is {max_context_len}. "
            "`executorch export` takes such models."
        )


def _require_regular_rotation(config: Mapping[str, Any]) -> None:
    layers, interval = config.get("no_rope_layers"), config.get("no_rope_layer_interval")
    regular = [int(not interval or (i + 1) % interval != 0) for i in range(len(layers or ()))]
    if layers and list(layers) != regular:
        raise ValueError(
            f"config.json: no_rope_layers is {layers}; supported is to rotate in all layers but "
            f"each one of no_rope_layer_interval, {interval}: {regular}"
        )


def _rope(scaling: Mapping[str, Any]) -> dict[str, Any]:
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    found: dict[str, Any] = {}
    for name in ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings"):
        if scaling.get(name) is not None:
            found[name] = scaling[name]
    if kind == "llama3":
        found["use_scaled_rope"] = True
        found["rope_scale_factor"] = scaling["factor"]
        found["low_freq_factor"] = scaling["low_freq_factor"]
        found["high_freq_factor"] = scaling["high_freq_factor"]
    elif kind in ("longrope", "su"):
        found["rope_scaling_short_factor"] = scaling["short_factor"]
        found["rope_scaling_long_factor"] = scaling["long_factor"]
        found["rope_scaling_attention_factor"] = scaling.get("attention_factor")
    elif kind != "default":
        raise ValueError(f"config.json: rope scaling {kind!r} is not supported")
    return found


_PARTS = {
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "self_attn.q_norm": "attention.q_norm_fn",
    "self_attn.k_norm": "attention.k_norm_fn",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


def layer_name(path: str) -> str | None:
    """Meta's name of "model.layers.0.self_attn.q_proj"; None for what is no part of a layer."""
    pieces = path.removeprefix("model.layers.").split(".", 1)
    if not path.startswith("model.layers.") or len(pieces) < 2 or pieces[1] not in _PARTS:
        return None
    return f"layers.{pieces[0]}.{_PARTS[pieces[1]]}"


def is_huggingface(state: Mapping[str, Tensor]) -> bool:
    return "model.embed_tokens.weight" in state


def convert_state(state: Mapping[str, Tensor], args: ModelArgs) -> dict[str, Tensor]:
    """The parameters under Meta's names. Queries and keys are put in Meta's order of pairs unless
    `args.use_hf_rope`."""
    found: dict[str, Tensor] = {}
    for name, value in state.items():
        if name.endswith("rotary_emb.inv_freq"):
            continue
        for ours, part in _split(name, value, args):
            found[ours] = part
    if not args.use_hf_rope:
        for name, value in found.items():
            if ".wq." in name or ".wk." in name:
                found[name] = neighbours(value, args)
    return found


def _split(name: str, value: Tensor, args: ModelArgs) -> list[tuple[str, Tensor]]:
    top = {
        "model.embed_tokens.weight": "tok_embeddings.weight",
        "model.norm.weight": "norm.weight",
        "lm_head.weight": "output.weight",
        "lm_head.bias": "output.bias",
    }
    if name in top:
        return [(top[name], value)]
    pieces = name.removeprefix("model.layers.").split(".")
    if not name.startswith("model.layers.") or len(pieces) < 3:
        raise ValueError(f"checkpoint: {name} belongs to no part of a model like Llama")
    layer, part, kind = f"layers.{pieces[0]}.", ".".join(pieces[1:-1]), pieces[-1]
    assert args.head_dim is not None and args.n_kv_heads is not None
    if part == "self_attn.qkv_proj":
        q, kv = args.n_heads * args.head_dim, args.n_kv_heads * args.head_dim
        parts = zip(("wq", "wk", "wv"), value.split([q, kv, kv]), strict=True)
        return [(f"{layer}attention.{n}.{kind}", v) for n, v in parts]
    if part == "mlp.gate_up_proj":
        parts = zip(("w1", "w3"), value.chunk(2), strict=True)
        return [(f"{layer}feed_forward.{n}.{kind}", v) for n, v in parts]
    if part not in _PARTS:
        raise ValueError(f"checkpoint: {name} belongs to no part of a model like Llama")
    return [(f"{layer}{_PARTS[part]}.{kind}", value)]


def neighbours(value: Tensor, args: ModelArgs) -> Tensor:
    """Rows i and i + rotary_dim / 2 of each head become 2i and 2i + 1."""
    assert args.head_dim is not None
    heads = value.reshape(-1, args.head_dim, *value.shape[1:])
    order = torch.arange(args.rotary_dim).reshape(2, -1).T.flatten()
    rest = torch.arange(args.rotary_dim, args.head_dim)
    return heads[:, torch.cat([order, rest])].reshape(value.shape)
