"""The operator `llama::fallback`."""

from executorch.extension.llm.custom_ops.custom_ops import custom_ops_lib as fallback_op_lib

__all__ = ["fallback_op_lib"]
