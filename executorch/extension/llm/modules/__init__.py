"""Layers of torchtune's language and vision models in a form that can be exported. They have its
parameters and need no torchtune; `replace_...` put them into models that are made of it."""

from executorch.extension.llm.modules._position_embeddings import (
    TiledTokenPositionalEmbedding,
    TilePositionalEmbedding,
    replace_tile_positional_embedding,
    replace_tiled_token_positional_embedding,
)
from executorch.extension.llm.modules.attention import (
    MultiHeadAttention,
    replace_mha_with_inference_mha,
)
from executorch.extension.llm.modules.kv_cache import KVCache

__all__ = [
    "KVCache",
    "MultiHeadAttention",
    "TilePositionalEmbedding",
    "TiledTokenPositionalEmbedding",
    "replace_mha_with_inference_mha",
    "replace_tile_positional_embedding",
    "replace_tiled_token_positional_embedding",
]
