from executorch.backends.transforms.duplicate_dynamic_quant_chain import (
    DuplicateDynamicQuantChainPass,
)

__all__ = ["DuplicateDynamicQuantChainPass"]
