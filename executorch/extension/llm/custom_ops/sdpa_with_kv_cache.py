"""The operators over caches under the name of an earlier release."""

from executorch.extension.llm.custom_ops.custom_ops import (
    custom_ops_lib,
    sdpa_with_kv_cache_meta,
)

__all__ = ["custom_ops_lib", "sdpa_with_kv_cache_meta"]
