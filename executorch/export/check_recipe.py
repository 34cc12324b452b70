"""What the fields of a recipe may be: TypeError names the field, what was found and expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from executorch.export.recipe import (
    AOQuantizationConfig,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
)


def check_recipe(recipe: Any, name: str = "export_recipe") -> None:
    _require(name, recipe, ExportRecipe)
    for function in _listed(f"{name}.aten_transform_passes", recipe.aten_transform_passes):
        _require_function(f"{name}.aten_transform_passes", function)
    _listed(f"{name}.pipeline_stages", recipe.pipeline_stages)
    for switch in ("strict", "source_transform_in_place"):
        _require(f"{name}.{switch}", getattr(recipe, switch), int)
    if recipe.quantization_recipe is not None:
        _check_quantization(f"{name}.quantization_recipe", recipe.quantization_recipe)
    if recipe.lowering_recipe is not None:
        _check_lowering(f"{name}.lowering_recipe", recipe.lowering_recipe)


def _check_quantization(name: str, recipe: QuantizationRecipe) -> None:
    _require(name, recipe, QuantizationRecipe)
    for quantizer in _listed(f"{name}.quantizers", recipe.get_quantizers()):
        if not hasattr(quantizer, "annotate"):
            raise TypeError(f"{name}.quantizers: expected a Quantizer, found {quantizer!r:.80}")
    configs = _listed(f"{name}.ao_quantization_configs", recipe.ao_quantization_configs)
    for config in configs:
        _require(f"{name}.ao_quantization_configs", config, AOQuantizationConfig)
    for when in ("pre_prepare", "post_prepare", "pre_convert", "post_convert"):
        for each in _listed(f"{name}.{when}_passes", getattr(recipe, f"{when}_passes")):
            _require_function(f"{name}.{when}_passes", each)
    for option in ("calibration_inputs_fn", "train_fn"):
        if getattr(recipe, option) is not None:
            _require_function(f"{name}.{option}", getattr(recipe, option))


def _check_lowering(name: str, recipe: LoweringRecipe) -> None:
    _require(name, recipe, LoweringRecipe)
    for option in ("edge_transform_passes", "edge_manager_transform_passes"):
        for each in _listed(f"{name}.{option}", getattr(recipe, option)):
            _require_function(f"{name}.{option}", each)


def _require(name: str, found: Any, kind: type) -> None:
    if not isinstance(found, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        wanted = "True or False" if kind is int else f"{article} {kind.__name__}"
        raise TypeError(f"{name}: expected {wanted}, found {found!r:.80}")


def _require_function(name: str, found: Any) -> None:
    if not callable(found):
        raise TypeError(f"{name}: expected functions, found {found!r:.80}")


def _listed(name: str, found: Any) -> list[Any]:
    if found is None:
        return []
    if isinstance(found, (str, Mapping)) or not hasattr(found, "__iter__"):
        raise TypeError(f"{name}: expected a list, found {found!r:.80}")
    return list(found)
