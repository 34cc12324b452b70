"""What is no recipe, or no argument of `export`, is refused where it is given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack.recipes import XNNPackRecipeType
from executorch.export import ExportRecipe, LoweringRecipe, QuantizationRecipe, StageType, export

X = (torch.ones(2, 4),)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3)).eval()


def none(*_: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (3, "export_recipe: expected an ExportRecipe, found 3"),
        (
            ExportRecipe(quantization_recipe=3),  # type: ignore[arg-type]
            ".quantization_recipe: expected a QuantizationRecipe, found 3",
        ),
        (
            ExportRecipe(quantization_recipe=QuantizationRecipe(quantizers=[3])),
            ".quantization_recipe.quantizers: expected a Quantizer, found 3",
        ),
        (
            ExportRecipe(quantization_recipe=QuantizationRecipe(ao_quantization_configs=[3])),  # type: ignore[list-item]
            ".ao_quantization_configs: expected an AOQuantizationConfig, found 3",
        ),
        (
            ExportRecipe(quantization_recipe=QuantizationRecipe(calibration_inputs_fn=[X])),  # type: ignore[arg-type]
            ".calibration_inputs_fn: expected functions, found",
        ),
        (
            ExportRecipe(lowering_recipe=LoweringRecipe(edge_transform_passes=none)),  # type: ignore[arg-type]
            ".lowering_recipe.edge_transform_passes: expected a list, found <function",
        ),
        (
            ExportRecipe(lowering_recipe=LoweringRecipe(edge_transform_passes=[lambda *_: 3])),
            "passes: expected a list of them, found 3",
        ),
        (
            ExportRecipe(pipeline_stages=StageType.TO_EDGE),  # type: ignore[arg-type]
            ".pipeline_stages: expected a list, found",
        ),
        (ExportRecipe(strict="no"), ".strict: expected True or False, found 'no'"),  # type: ignore[arg-type]
    ],
)
def test_fields_of_other_types_are_refused(recipe: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        export(model(), [X], recipe)


def test_only_recipes_are_combined() -> None:
    with pytest.raises(TypeError, match=r"recipes\[1\]: expected an ExportRecipe, found 3"):
        ExportRecipe.combine([ExportRecipe(), 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected a list of recipes"):
        ExportRecipe.combine(ExportRecipe())  # type: ignore[arg-type]


def test_shapes_of_a_method_that_does_not_exist_are_refused() -> None:
    shapes = {"typo": ({0: torch.export.Dim("n", max=4)},)}
    with pytest.raises(ValueError, match=r"dynamic_shapes: no methods \['typo'\].*'forward'"):
        export({"forward": model()}, [X], dynamic_shapes=shapes)
    with pytest.raises(ValueError, match="model: the dict has no method"):
        export({}, [X])
    with pytest.raises(ValueError, match="example_inputs of 'forward': expected tuples"):
        export(model(), 3)


@pytest.mark.parametrize(
    ("inputs", "error"),
    [([], "ValueError: .* gave no inputs"), ([X[0]], "TypeError: .*tuples .*, found Tensor")],
)
def test_calibration_needs_arguments(inputs: list[Any], error: str) -> None:
    recipe = ExportRecipe.get_recipe(XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL)
    assert recipe.quantization_recipe is not None
    recipe.quantization_recipe.calibration_inputs_fn = lambda: inputs
    kind, message = error.split(": ")
    wanted = {"ValueError": ValueError, "TypeError": TypeError}[kind]
    with pytest.raises(wanted, match=f"calibration_inputs_fn{message}"):
        export(model(), [X], recipe)


def test_a_program_is_saved_under_a_path(tmp_path: Path) -> None:
    export(model(), [X]).save_to_pte(tmp_path / "model")
    assert (tmp_path / "model.pte").exists()
