"""The sizes and variants of a transformer in the manner of Llama."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from executorch._text_enum import StrEnum


class ActFn(StrEnum):
    SILU = "silu"
    GELU = "gelu"
    GELU_APPROX = "gelu_approx"

    @classmethod
    def from_string(cls, value: str) -> ActFn:
        if value not in list(cls):
            raise ValueError(f"params: act_fn is {value!r}; expected one of {', '.join(cls)}")
        return cls(value)

    def get_function(self) -> Callable[[Tensor], Tensor]:
        functions: dict[ActFn, Any] = {
            ActFn.SILU: F.silu,
            ActFn.GELU: F.gelu,
            ActFn.GELU_APPROX: partial(F.gelu, approximate="tanh"),
        }
        return functions[self]


@dataclass(kw_only=True)
class UnsupportedVariants:
    """Variants that params.json may name; only these values are taken."""

    moe: bool = False
    attention_type: str = "mha"
    attention_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    layer_types: list[str] | None = None
    mlp_type: list[str] | None = None
    num_kv_shared_layers: int = 0
    scale_query_by: float = 1.0
    use_q_gate: bool = False
    use_attn_o_gate: bool = False
    use_attn_o_norm: bool = False
    use_residual_gate: bool = False
    use_ffn_learnable_scales: bool = False
    r: int | None = None
    lora_alpha: int | None = None
    target_modules: list[str] | None = None
    apply_embedding: bool = True
    apply_output: bool = True
    input_prune_map: dict[int, int] | None = None
    output_prune_map: dict[int, int] | None = None


@dataclass
class ModelArgs(UnsupportedVariants):
    """Names and defaults are those of params.json.

    hidden_dim         width between the two layers of a block; by default 2/3 of 4 dim, times
                       ffn_dim_multiplier, rounded up to a multiple of `multiple_of`
    use_hf_rope        positions turn the halves of a head against each other, as in Hugging Face's
                       checkpoints, and not neighbouring pairs, as in Meta's
    rope_theta         the base of the rotations' frequencies (rope_freq_base, an older name)
    use_scaled_rope    Llama 3.1's stretching of low frequencies
    partial_rotary_factor   the part of a head that is rotated
    rope_scaling_*     LongRoPE: a divisor for each frequency, for short and for long contexts
    no_rope_layer_interval  every such layer has no positions
    """

    dim: int = 4096
    n_layers: int = 1
    n_heads: int = 32
    n_kv_heads: int | None = None
    vocab_size: int = 512
    hidden_dim: int | None = None
    head_dim: int | None = None
    multiple_of: int = 256
    ffn_dim_multiplier: float | None = None
    norm_eps: float = 1e-5
    rms_norm_add_unit_offset: bool = False
    post_attention_norm: bool = False
    post_ffn_norm: bool = False
    max_batch_size: int = 1
    max_seq_len: int = 2048
    max_context_len: int = 2048
    attention_qkv_bias: bool = False
    attention_output_bias: bool = False
    attention_multiplier: float | None = None
    residual_multiplier: float | None = None
    embedding_scale_factor: float = 1.0
    logits_scaling: float | None = None
    use_qk_norm: bool = False
    qk_norm_before_rope: bool = False
    qk_norm_affine: bool = True
    act_fn: ActFn = ActFn.SILU
    use_kv_cache: bool = False
    use_sdpa_with_kv_cache_op: bool = False
    quantize_kv_cache: bool = False
    generate_full_logits: bool = False
    enable_dynamic_shape: bool = False
    output_bias: bool = False
    tie_word_embeddings: bool | None = None
    use_hf_rope: bool = False
    no_rope_layer_interval: int | None = None
    partial_rotary_factor: float = 1.0
    rope_theta: float | None = None
    rope_freq_base: float = 10000.0
    use_scaled_rope: bool = False
    rope_scale_factor: float = 8
    low_freq_factor: float = 1
    high_freq_factor: float = 4
    original_max_position_embeddings: int | None = None
    max_position_embeddings: int | None = None
    rope_scaling_short_factor: list[float] | None = None
    rope_scaling_long_factor: list[float] | None = None
    rope_scaling_attention_factor: float | None = None

    def __post_init__(self) -> None:
        self._refuse_unsupported_variants()
        self.n_kv_heads = self.n_heads if self.n_kv_heads is None else self.n_kv_heads
        self.rope_freq_base = self.rope_freq_base if self.rope_theta is None else self.rope_theta
        self.act_fn = ActFn.from_string(self.act_fn)
        self._check_numbers()
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"params: n_heads, {self.n_heads}, is no multiple of n_kv_heads, {self.n_kv_heads}"
            )
        if self.head_dim is None:
            if self.dim % self.n_heads:
                raise ValueError(
                    f"params: dim, {self.dim}, is no multiple of n_heads, {self.n_heads}"
                )
            self.head_dim = self.dim // self.n_heads
        if self.hidden_dim is None:
            hidden = int(2 * (4 * self.dim) / 3)
            if self.ffn_dim_multiplier is not None:
                hidden = int(self.ffn_dim_multiplier * hidden)
            self.hidden_dim = -(-hidden // self.multiple_of) * self.multiple_of
        if self.rotary_dim % 2 or self.rotary_dim < 2:
            raise ValueError(
                f"params: {self.rotary_dim} numbers of a head cannot be rotated in pairs"
            )

    def _check_numbers(self) -> None:
        sizes = (
            "dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "multiple_of", "hidden_dim",
            "head_dim",
        )  # fmt: skip
        for name in sizes:
            value = getattr(self, name)
            is_left_open = value is None and name in ("hidden_dim", "head_dim")
            if not is_left_open and (type(value) is not int or value < 1):
                raise ValueError(
                    f"params: {name} is {value!r}; a number of at least 1 was expected"
                )
        for name in ("norm_eps", "rope_freq_base"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or value <= 0:
                is_theta = name == "rope_freq_base" and self.rope_theta is not None
                raise ValueError(
                    f"params: {'rope_theta' if is_theta else name} is {value!r}; a finite number "
                    "above 0 was expected"
                )

    def _refuse_unsupported_variants(self) -> None:
        for name, taken in vars(UnsupportedVariants()).items():
            value = getattr(self, name)
            if value != taken and (value or taken):  # [], None and False say the same
                raise ValueError(
                    f"params: {name} is {value!r}, which is not supported; expected {taken!r}"
                )

    @property
    def rotary_dim(self) -> int:
        assert self.head_dim is not None
        return int(self.head_dim * self.partial_rotary_factor)

    @classmethod
    def from_params(cls, params: Mapping[str, Any], **settings: Any) -> ModelArgs:
        """From params.json, or Hugging Face's config.json, whose names differ. What says nothing
        about the computation is skipped; a variant that is not here is a ValueError, and so is a
        name that is nearly one of those."""
        if "hidden_size" in params:
            from executorch.examples.models.llama.huggingface import params_from_config

            context = settings.get("max_context_len", cls.max_context_len)
            params = params_from_config(params, context)
        known = {f.name for f in dataclasses.fields(cls)}
        for name in params:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.85)
            if name not in known and near and near[0] not in params:
                raise ValueError(f"params: there is no {name}; did you mean {near[0]}?")
        return cls(**{**{k: v for k, v in params.items() if k in known}, **settings})
