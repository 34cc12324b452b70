"""The sizes of known models, for checkpoints that come without params.json."""

from __future__ import annotations

from typing import Any

from executorch.extension.llm.export.config.llm_config import ModelType

_QWEN2 = {
    "norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "vocab_size": 151936,
    "attention_qkv_bias": True,
    "use_hf_rope": True,
}
_QWEN3 = {
    "norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "vocab_size": 151936,
    "head_dim": 128,
    "n_kv_heads": 8,
    "use_qk_norm": True,
    "qk_norm_before_rope": True,
    "use_hf_rope": True,
    "tie_word_embeddings": True,
}

KNOWN_PARAMS: dict[ModelType, dict[str, Any]] = {
    ModelType.stories110m: {
        "dim": 768,
        "multiple_of": 32,
        "n_heads": 12,
        "n_layers": 12,
        "norm_eps": 1e-5,
        "vocab_size": 32000,
    },
    ModelType.qwen2_5_0_5b: {
        **_QWEN2,
        "dim": 896,
        "hidden_dim": 4864,
        "n_heads": 14,
        "n_kv_heads": 2,
        "n_layers": 24,
        "tie_word_embeddings": True,
    },
    ModelType.qwen2_5_1_5b: {
        **_QWEN2,
        "dim": 1536,
        "hidden_dim": 8960,
        "n_heads": 12,
        "n_kv_heads": 2,
        "n_layers": 28,
        "tie_word_embeddings": True,
    },
    ModelType.qwen2_5_coder_32b: {
        **_QWEN2,
        "dim": 5120,
        "hidden_dim": 27648,
        "n_heads": 40,
        "n_kv_heads": 8,
        "n_layers": 64,
        "vocab_size": 152064,
    },
    ModelType.qwen3_0_6b: {
        **_QWEN3,
        "dim": 1024,
        "hidden_dim": 3072,
        "n_heads": 16,
        "n_layers": 28,
    },
    ModelType.qwen3_1_7b: {
        **_QWEN3,
        "dim": 2048,
        "hidden_dim": 6144,
        "n_heads": 16,
        "n_layers": 28,
    },
    ModelType.qwen3_4b: {
        **_QWEN3,
        "dim": 2560,
        "hidden_dim": 9728,
        "n_heads": 32,
        "n_layers": 36,
    },
    ModelType.smollm2: {
        "dim": 576,
        "hidden_dim": 1536,
        "n_heads": 9,
        "n_kv_heads": 3,
        "n_layers": 30,
        "norm_eps": 1e-5,
        "rope_theta": 100000.0,
        "vocab_size": 49152,
        "use_hf_rope": True,
        "tie_word_embeddings": True,
    },
    ModelType.phi_4_mini: {
        "dim": 3072,
        "hidden_dim": 8192,
        "n_heads": 24,
        "n_kv_heads": 8,
        "n_layers": 32,
        "norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "vocab_size": 200064,
        "partial_rotary_factor": 0.75,
        "use_hf_rope": True,
        "tie_word_embeddings": True,
    },
}
