"""Quantize the weights of a model one by one, by rules over their names.

recipe = QuantRecipe([
    QuantRule(r".*norm.*", None),                                    # stays as it is
    QuantRule(r".*", QuantConfig(bits=4, group_size=32, symmetric=True, method="min_max")),
])
model.load_state_dict(quantize_model(model, recipe), assign=True)
"""

from executorch.extension.llm.export.quant.convert import (
    Convert,
    fuse_along_output,
    identity,
    to_default,
    to_exportable,
)
from executorch.extension.llm.export.quant.quantize import (
    dequantize_weight,
    quantize_model,
    quantize_stream,
    quantize_weight,
)
from executorch.extension.llm.export.quant.recipe import QuantConfig, QuantRecipe, QuantRule

__all__ = [
    "Convert",
    "QuantConfig",
    "QuantRecipe",
    "QuantRule",
    "dequantize_weight",
    "fuse_along_output",
    "identity",
    "quantize_model",
    "quantize_stream",
    "quantize_weight",
    "to_default",
    "to_exportable",
]
