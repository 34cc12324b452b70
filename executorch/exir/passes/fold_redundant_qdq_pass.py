"""`FoldRedundantDequantizeQuantizePass` under its public module name."""

from executorch.exir.passes.fold_redundant_dequantize_quantize_pass import (
    FoldRedundantDequantizeQuantizePass,
)

__all__ = ["FoldRedundantDequantizeQuantizePass"]
