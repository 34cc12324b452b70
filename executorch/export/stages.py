"""The stages of a pipeline; each takes what the one before it made, method by method."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from executorch.exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.export.recipe import LoweringRecipe, QuantizationRecipe
from executorch.export.types import StageType


@dataclass
class PipelineArtifact:
    """What a stage hands on. `data` is a dict by method up to the export, then a manager.

    context  example_inputs, dynamic_shapes, constant_methods, export_recipe, generate_etrecord
    """

    data: Any
    context: dict[str, Any]

    def copy_with_new_data(self, new_data: Any) -> PipelineArtifact:
        return PipelineArtifact(new_data, dict(self.context))


class Stage(ABC):
    """Users may register their own in place of one of these (`ExportSession.register_stage`)."""

    def __init__(self) -> None:
        self._artifact: PipelineArtifact | None = None

    @property
    @abstractmethod
    def stage_type(self) -> StageType: ...

    @property
    @abstractmethod
    def valid_predecessor_stages(self) -> list[StageType]: ...

    @property
    def can_start_pipeline(self) -> bool:
        return False

    @abstractmethod
    def run(self, artifact: PipelineArtifact) -> None:
        """Must set `self._artifact`."""

    def get_artifacts(self) -> PipelineArtifact:
        if self._artifact is None:
            raise RuntimeError(f"stage {self.stage_type.value} has not run")
        return self._artifact


class _Stage(Stage):
    """A stage that is a function from data to data."""

    kind: StageType
    after: Sequence[StageType] = ()
    first = False

    @property
    def stage_type(self) -> StageType:
        return self.kind

    @property
    def valid_predecessor_stages(self) -> list[StageType]:
        return list(self.after)

    @property
    def can_start_pipeline(self) -> bool:
        return self.first

    def run(self, artifact: PipelineArtifact) -> None:
        self._artifact = artifact.copy_with_new_data(self.apply(artifact.data, artifact.context))

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        raise NotImplementedError


class SourceTransformStage(_Stage):
    """torchao's `quantize_` on the modules themselves, or on copies."""

    kind = StageType.SOURCE_TRANSFORM
    first = True

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        recipe = context["export_recipe"]
        quantization: QuantizationRecipe | None = recipe.quantization_recipe
        configs = (quantization and quantization.ao_quantization_configs) or []
        if not configs:
            return data
        from torchao.quantization import quantize_

        result = {}
        for method, model in data.items():
            model = model if recipe.source_transform_in_place else copy.deepcopy(model)
            for config in configs:
                options = {"filter_fn": config.filter_fn} if config.filter_fn else {}
                quantize_(model, config.ao_base_config, **options)
            result[method] = model
        return result


class QuantizeStage(_Stage):
    """pt2e: capture, prepare, calibrate or train, convert."""

    kind = StageType.QUANTIZE
    after = (StageType.SOURCE_TRANSFORM,)
    first = True

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        recipe: QuantizationRecipe | None = context["export_recipe"].quantization_recipe
        quantizers = recipe.get_quantizers() if recipe else None
        if recipe is None or not quantizers:
            return data
        return {
            method: _quantize(
                model,
                context["example_inputs"][method],
                context["dynamic_shapes"].get(method),
                recipe,
                quantizers,
                context["export_recipe"].strict,
            )
            for method, model in data.items()
        }


def _quantize(
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

    if recipe.dynamic_batch_size and shapes is None:
        batch = torch.export.Dim("batch")
        shapes = tuple(
            {0: batch} if isinstance(i, torch.Tensor) and i.dim() else None for i in examples[0]
        )
    with torch.no_grad():
        captured = torch.export.export(
            model, examples[0], dynamic_shapes=shapes, strict=strict
        ).module()
    captured = _passed(captured, recipe.pre_prepare_passes)
    quantizer = quantizers[0] if len(quantizers) == 1 else ComposableQuantizer(quantizers)
    prepare = prepare_qat_pt2e if recipe.is_qat else prepare_pt2e
    prepared = _passed(prepare(captured, quantizer), recipe.post_prepare_passes)
    if recipe.is_qat and recipe.train_fn is not None:
        recipe.train_fn(prepared)
    calibration = recipe.calibration_inputs_fn() if recipe.calibration_inputs_fn else examples
    with torch.no_grad():
        for inputs in calibration:
            prepared(*inputs)
    prepared = _passed(prepared, recipe.pre_convert_passes)
    return _passed(convert_pt2e(prepared), recipe.post_convert_passes)


def _passed(module: Any, passes: Sequence[Any] | None) -> Any:
    for each in passes or ():
        result = each(module)
        module = getattr(result, "graph_module", result)
    return module


class TorchExportStage(_Stage):
    kind = StageType.TORCH_EXPORT
    after = (StageType.SOURCE_TRANSFORM, StageType.QUANTIZE)
    first = True

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        recipe = context["export_recipe"]
        programs = {}
        for method, model in data.items():
            with torch.no_grad():
                programs[method] = torch.export.export(
                    model,
                    context["example_inputs"][method][0],
                    dynamic_shapes=context["dynamic_shapes"].get(method),
                    strict=recipe.strict,
                )
            for transform in recipe.aten_transform_passes or ():
                programs[method] = transform(method, programs[method])
        return programs


def _lowering(context: dict[str, Any]) -> LoweringRecipe:
    return context["export_recipe"].lowering_recipe or LoweringRecipe()


def _edge_passes(programs: dict[str, Any], lowering: LoweringRecipe) -> dict[str, Any] | None:
    if not lowering.edge_transform_passes:
        return None
    passes: dict[str, list[Any]] = {}
    for method, program in programs.items():
        passes[method] = []
        for make in lowering.edge_transform_passes:
            made = make(method, program)
            passes[method] += list(getattr(made, "passes", made))
    return passes


class EdgeTransformAndLowerStage(_Stage):
    kind = StageType.TO_EDGE_TRANSFORM_AND_LOWER
    after = (StageType.TORCH_EXPORT,)
    first = True

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        lowering = _lowering(context)
        return to_edge_transform_and_lower(
            data,
            transform_passes=_edge_passes(data, lowering),
            partitioner=lowering.partitioners,
            constant_methods=context["constant_methods"],
            compile_config=lowering.edge_compile_config,
            generate_etrecord=context["generate_etrecord"],
        )


class ToEdgeStage(_Stage):
    kind = StageType.TO_EDGE
    after = (StageType.TORCH_EXPORT,)
    first = True

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        return to_edge(
            data,
            constant_methods=context["constant_methods"],
            compile_config=_lowering(context).edge_compile_config,
            generate_etrecord=context["generate_etrecord"],
        )


class EdgeProgramManagerTransformStage(_Stage):
    kind = StageType.EDGE_PROGRAM_MANAGER_TRANSFORM
    after = (StageType.TO_EDGE, StageType.TO_EDGE_TRANSFORM_AND_LOWER)

    def apply(self, data: EdgeProgramManager, context: dict[str, Any]) -> Any:
        lowering = _lowering(context)
        passes = _edge_passes({m: data.exported_program(m) for m in data.methods}, lowering)
        if passes and StageType.TO_EDGE in (context["export_recipe"].pipeline_stages or ()):
            data = data.transform(passes)
        for make in lowering.edge_manager_transform_passes or ():
            made = make(data)
            data = data.transform(list(getattr(made, "passes", made)))
        return data


class ToBackendStage(_Stage):
    kind = StageType.TO_BACKEND
    after = (StageType.TO_EDGE, StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)

    def apply(self, data: EdgeProgramManager, context: dict[str, Any]) -> Any:
        partitioners = _lowering(context).partitioners
        if isinstance(partitioners, dict):
            most = max((len(p) for p in partitioners.values()), default=0)
            for i in range(most):
                data = data.to_backend({m: p[i] for m, p in partitioners.items() if i < len(p)})
            return data
        for partitioner in partitioners or ():
            data = data.to_backend(partitioner)
        return data


class ExecutorchStage(_Stage):
    kind = StageType.TO_EXECUTORCH
    after = (
        StageType.TO_EDGE,
        StageType.TO_EDGE_TRANSFORM_AND_LOWER,
        StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
        StageType.TO_BACKEND,
    )

    def apply(self, data: EdgeProgramManager, context: dict[str, Any]) -> Any:
        config = context["export_recipe"].executorch_backend_config
        return data.to_executorch(config or ExecutorchBackendConfig())


STAGES = (
    SourceTransformStage,
    QuantizeStage,
    TorchExportStage,
    EdgeTransformAndLowerStage,
    ToEdgeStage,
    EdgeProgramManagerTransformStage,
    ToBackendStage,
    ExecutorchStage,
)
