"""Quantization of a captured module: prepare, calibrate or train, convert."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from executorch.exir import dynamic_steps
from executorch.export.layers_in_floats import warn_of_conv1d, warn_of_recurrent_layers
from executorch.export.recipe import QuantizationRecipe


def captured_shapes(model: torch.nn.Module, example: tuple[Any, ...], shapes: Any) -> Any:
    """The dynamic shapes of a captured module, where each of *args is an argument of its own, from
    those of `model`, where these are one."""
    signature = inspect.signature(model.forward)
    variadic = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    names = list(signature.bind(*example).arguments)
    if not shapes or not variadic or variadic[0] not in names:
        return shapes
    *before, last = [shapes.get(n) for n in names] if isinstance(shapes, dict) else shapes
    n_last = len(example) - len(before)
    return (*before, *((None,) * n_last if last is None else last))


def quantized(
    model: torch.nn.Module,
    examples: list[tuple[Any, ...]],
    shapes: Any,
    recipe: QuantizationRecipe,
    quantizers: list[Any],
    strict: bool,
) -> torch.nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import (
        convert_pt2e,
        prepare_pt2e,
        prepare_qat_pt2e,
    )
    from torchao.quantization.pt2e.quantizer import ComposableQuantizer

    warn_of_recurrent_layers(model)
    warn_of_conv1d(model)
    if recipe.is_qat:
        if recipe.train_fn is None:
            raise ValueError("QuantizationRecipe: is_qat needs a train_fn, which trains the module")
        model.train()
    if recipe.dynamic_batch_size and shapes is None:
        batch = torch.export.Dim("batch")
        shapes = tuple(
            {0: batch} if isinstance(i, torch.Tensor) and i.dim() else None for i in examples[0]
        )
    captured = captured_program(model, examples[0], shapes, strict).module()
    captured = _passed(captured, recipe.pre_prepare_passes)
    quantizer = quantizers[0] if len(quantizers) == 1 else ComposableQuantizer(quantizers)
    prepare = prepare_qat_pt2e if recipe.is_qat else prepare_pt2e
    prepared = _passed(prepare(captured, quantizer), recipe.post_prepare_passes)
    if recipe.is_qat:
        _train(prepared, recipe)
    else:
        _calibrate(prepared, recipe.calibration_inputs_fn, examples)
    prepared = _passed(prepared, recipe.pre_convert_passes)
    return _passed(convert_pt2e(prepared), recipe.post_convert_passes)


def _train(prepared: Any, recipe: QuantizationRecipe) -> None:
    """What is left does not depend on chance or on other inputs of the batch: dropout and batch
    norms, captured as in training, end as in evaluation."""
    from torchao.quantization.pt2e import (
        allow_exported_model_train_eval,
        move_exported_model_to_eval,
        move_exported_model_to_train,
    )

    assert recipe.train_fn is not None
    allow_exported_model_train_eval(prepared)
    move_exported_model_to_train(prepared)
    recipe.train_fn(prepared)
    move_exported_model_to_eval(prepared)


def _calibrate(
    prepared: Any,
    inputs_fn: Callable[[], Iterable[tuple[Any, ...]]] | None,
    examples: list[tuple[Any, ...]],
) -> None:
    calibrated = False
    with torch.no_grad():
        for inputs in inputs_fn() if inputs_fn else examples:
            if not isinstance(inputs, (tuple, list)):
                raise TypeError(
                    "calibration_inputs_fn: expected tuples of arguments, found "
                    f"{type(inputs).__name__}"
                )
            prepared(*inputs)
            calibrated = True
    if not calibrated:
        raise ValueError("calibration_inputs_fn gave no inputs: scales would have no meaning")


def captured_program(
    model: torch.nn.Module, inputs: tuple[Any, ...], shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    # Dynamo, which strict means, does not look into the loops.
    steps = nullcontext() if strict else dynamic_steps()
    with torch.no_grad(), steps:
        return torch.export.export(model, inputs, dynamic_shapes=shapes, strict=strict)


def _passed(module: Any, passes: Sequence[Any] | None) -> Any:
    for each in passes or ():
        result = each(module)
        module = getattr(result, "graph_module", result)
    return module
