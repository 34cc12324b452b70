from __future__ import annotations

from torch import nn

from executorch.examples.models.llama.source_transformation.custom_kv_cache import (
    replace_kv_cache_with_custom_kv_cache,
)


def replace_sdpa_with_custom_op(module: nn.Module, use_attention_mask: bool = False) -> nn.Module:
    """Let the layers of a model of this folder attend by llama::custom_sdpa, in place.

    Their caches say which attention they need, so they become those of the operator.
    use_attention_mask  ValueError if true: these models' attention is causal
    """
    if use_attention_mask:
        raise ValueError("use_attention_mask: the models here are causal and have no other mask")
    return replace_kv_cache_with_custom_kv_cache(module)
