"""From a model to a program in one call, and recipes that say how.

    from executorch.export import export

    export(model, [(x,)], quantize="int8").save_to_pte("model.pte")

The command line: python -m executorch.export --help
"""

import executorch.export._needs_torch  # noqa: F401
from executorch.export.export import ExportSession, export
from executorch.export.recipe import (
    AOQuantizationConfig,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
)
from executorch.export.recipe_provider import BackendRecipeProvider
from executorch.export.recipe_registry import recipe_registry
from executorch.export.types import StageType

__all__ = [
    "AOQuantizationConfig",
    "BackendRecipeProvider",
    "ExportRecipe",
    "ExportSession",
    "LoweringRecipe",
    "QuantizationRecipe",
    "RecipeType",
    "StageType",
    "export",
    "recipe_registry",
]
