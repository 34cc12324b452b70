"""The stages of a pipeline; each takes what the one before it made, method by method."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from executorch.exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.capture._inputs import distinct_inputs
from executorch.exir.pass_manager import flat_passes
from executorch.export.layers_in_floats import (
    kinds_of,
    warn_of_attention,
    warn_of_conv1d,
    warn_of_nothing_quantized,
    warn_of_recurrent_layers,
)
from executorch.export.pt2e import captured_program, captured_shapes, quantized
from executorch.export.recipe import ExportRecipe, LoweringRecipe, QuantizationRecipe
from executorch.export.types import StageType


@dataclass
class PipelineArtifact:
    """What a stage hands on. `data` is a dict by method up to the export, then a manager.

    context  example_inputs, dynamic_shapes, constant_methods, export_recipe, generate_etrecord;
             after lowering delegation_info and delegation_info_by_method
    """

    data: Any
    context: dict[str, Any]

    def add_context(self, key: str, value: Any) -> None:
        self.context[key] = value

    def get_context(self, key: str, default: Any = None) -> Any:
        return self.context.get(key, default)

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
            raise RuntimeError(
                f"Stage: {type(self).__name__} not executed: {self.stage_type.value} has not run"
            )
        return self._artifact


class _Stage(Stage):
    """A stage that is a function from data to data. Its options are those of its constructor;
    `of` takes them out of a recipe, or `from_recipe` out of its lowering recipe."""

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

    @classmethod
    def of(cls, recipe: ExportRecipe) -> Stage:
        return cls.from_recipe(recipe.lowering_recipe)  # type: ignore

    def run(self, artifact: PipelineArtifact) -> None:
        made = artifact.copy_with_new_data(None)
        made.data = self.apply(artifact.data, made.context)
        self._artifact = made

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        """The new data. May change the context, which is that of the stages that follow."""
        raise NotImplementedError


class _LoweringStage(_Stage):
    """A stage that gives parts to backends, and tells which."""

    def run(self, artifact: PipelineArtifact) -> None:
        super().run(artifact)
        manager = self.get_artifacts().data
        found = {
            method: get_delegation_info(manager.exported_program(method).graph_module)
            for method in sorted(manager.methods)
        }
        first = found.get("forward", next(iter(found.values()), None))
        self.get_artifacts().add_context("delegation_info", first)
        self.get_artifacts().add_context("delegation_info_by_method", found)

    @property
    def delegation_info(self) -> Any:
        """Of `forward`, or else the first method by name."""
        return self.get_artifacts().get_context("delegation_info")

    @property
    def delegation_info_by_method(self) -> dict[str, Any]:
        return self.get_artifacts().get_context("delegation_info_by_method")  # type: ignore


def _examples(context: dict[str, Any], method: str) -> list[tuple[Any, ...]]:
    examples = (context.get("example_inputs") or {}).get(method)
    if not examples:
        raise ValueError(f"Example inputs for method {method} not found: a module needs them")
    return [distinct_inputs(args) for args in examples]


class SourceTransformStage(_Stage):
    """torchao's `quantize_` on the modules themselves, or on copies."""

    kind = StageType.SOURCE_TRANSFORM
    first = True

    def __init__(
        self, quantization_recipe: QuantizationRecipe | None, in_place: bool = False
    ) -> None:
        super().__init__()
        self._quantization, self._in_place = quantization_recipe, in_place

    @classmethod
    def of(cls, recipe: ExportRecipe) -> Stage:
        return cls(recipe.quantization_recipe, recipe.source_transform_in_place)

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        quantization = self._quantization
        configs = (quantization and quantization.ao_quantization_configs) or []
        if not configs:
            return data
        from torchao.quantization import quantize_

        result = {}
        for method, model in data.items():
            model = model if self._in_place else copy.deepcopy(model)
            warn_of_recurrent_layers(model)
            warn_of_attention(model)
            warn_of_conv1d(model)
            before = kinds_of(model)
            for config in configs:
                options = {"filter_fn": config.filter_fn} if config.filter_fn else {}
                quantize_(model, config.ao_base_config, **options)
            if kinds_of(model) == before:
                warn_of_nothing_quantized(method, model)
            result[method] = model
        return result


class QuantizeStage(_Stage):
    """pt2e: capture, prepare, calibrate or train, convert."""

    kind = StageType.QUANTIZE
    after = (StageType.SOURCE_TRANSFORM,)
    first = True

    def __init__(self, quantization_recipe: QuantizationRecipe | None, strict: bool = True) -> None:
        super().__init__()
        self._quantization, self._strict = quantization_recipe, strict

    @classmethod
    def of(cls, recipe: ExportRecipe) -> Stage:
        return cls(recipe.quantization_recipe, recipe.strict)

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        recipe = self._quantization
        quantizers = recipe.quantizers if recipe else None
        if recipe is None or not quantizers:
            return data
        result: dict[str, Any] = {}
        given = context.get("dynamic_shapes") or {}
        captured = {}
        for method, model in data.items():
            examples, shapes = _examples(context, method), given.get(method)
            result[method] = quantized(model, examples, shapes, recipe, quantizers, self._strict)
            captured[method] = captured_shapes(model, examples[0], shapes)
            if not any("quantize" in str(n.target) for n in result[method].graph.nodes):
                warn_of_nothing_quantized(method, model)
        context["dynamic_shapes"] = captured
        return result


class TorchExportStage(_Stage):
    kind = StageType.TORCH_EXPORT
    after = (StageType.SOURCE_TRANSFORM, StageType.QUANTIZE)
    first = True

    def __init__(
        self, aten_transform_passes: Sequence[Any] | None = None, strict: bool = True
    ) -> None:
        super().__init__()
        for each in aten_transform_passes or ():
            if not callable(each):
                raise ValueError(f"Aten transform passes must be callables, found {each!r}")
        self._passes, self._strict = list(aten_transform_passes or ()), strict

    @classmethod
    def of(cls, recipe: ExportRecipe) -> Stage:
        return cls(recipe.aten_transform_passes, recipe.strict)

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        programs = {}
        for method, model in data.items():
            shapes = (context.get("dynamic_shapes") or {}).get(method)
            example = _examples(context, method)[0]
            programs[method] = captured_program(model, example, shapes, self._strict)
            for transform in self._passes:
                programs[method] = transform(method, programs[method])
        return programs


def _edge_passes(programs: dict[str, Any], makers: Sequence[Any] | None) -> dict[str, Any] | None:
    """By method what the functions make for it; None if that is nothing."""
    passes: dict[str, list[Any]] = {}
    for method, program in programs.items():
        for make in makers or ():
            made = make(method, program)
            passes.setdefault(method, []).extend(flat_passes(getattr(made, "passes", made)))
    return {method: each for method, each in passes.items() if each} or None


class EdgeTransformAndLowerStage(_LoweringStage):
    kind = StageType.TO_EDGE_TRANSFORM_AND_LOWER
    after = (StageType.TORCH_EXPORT,)
    first = True

    def __init__(
        self,
        partitioners: list[Any] | dict[str, list[Any]] | None = None,
        transform_passes: Sequence[Any] | None = None,
        compile_config: Any = None,
    ) -> None:
        super().__init__()
        self._partitioners, self._passes = partitioners, transform_passes
        self._compile_config = compile_config

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> EdgeTransformAndLowerStage:
        lowering = lowering_recipe or LoweringRecipe()
        passes = lowering.edge_transform_passes
        return cls(lowering.partitioners, passes, lowering.edge_compile_config)

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        return to_edge_transform_and_lower(
            data,
            transform_passes=_edge_passes(data, self._passes),
            partitioner=self._partitioners,
            constant_methods=context.get("constant_methods"),
            compile_config=self._compile_config,
            generate_etrecord=context.get("generate_etrecord", False),
        )


class ToEdgeStage(_Stage):
    kind = StageType.TO_EDGE
    after = (StageType.TORCH_EXPORT,)
    first = True

    def __init__(self, edge_compile_config: Any = None) -> None:
        super().__init__()
        self._compile_config = edge_compile_config

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> ToEdgeStage:
        return cls((lowering_recipe or LoweringRecipe()).edge_compile_config)

    def apply(self, data: Any, context: dict[str, Any]) -> Any:
        return to_edge(
            data,
            constant_methods=context.get("constant_methods"),
            compile_config=self._compile_config,
            generate_etrecord=context.get("generate_etrecord", False),
        )


class EdgeProgramManagerTransformStage(_Stage):
    kind = StageType.EDGE_PROGRAM_MANAGER_TRANSFORM
    after = (StageType.TO_EDGE, StageType.TO_EDGE_TRANSFORM_AND_LOWER)

    def __init__(
        self,
        edge_transform_passes: Sequence[Any] | None = None,
        edge_manager_transform_passes: Sequence[Any] | None = None,
    ) -> None:
        super().__init__()
        self._passes = edge_transform_passes
        self._manager_passes = edge_manager_transform_passes

    @classmethod
    def of(cls, recipe: ExportRecipe) -> Stage:
        lowering = recipe.lowering_recipe
        by_hand = StageType.TO_EDGE in (recipe.pipeline_stages or ())
        if lowering is not None and not by_hand:  # they ran already
            lowering = replace(lowering, edge_transform_passes=None)
        return cls.from_recipe(lowering)

    @classmethod
    def from_recipe(
        cls, lowering_recipe: LoweringRecipe | None
    ) -> EdgeProgramManagerTransformStage:
        lowering = lowering_recipe or LoweringRecipe()
        return cls(lowering.edge_transform_passes, lowering.edge_manager_transform_passes)

    def apply(self, data: EdgeProgramManager, context: dict[str, Any]) -> Any:
        if not isinstance(data, EdgeProgramManager):
            raise TypeError(f"expected an EdgeProgramManager, found {type(data).__name__}")
        programs = {m: data.exported_program(m) for m in data.methods}
        if passes := _edge_passes(programs, self._passes):
            data = data.transform(passes)
        for make in self._manager_passes or ():
            made = make(data)
            if passes := flat_passes(getattr(made, "passes", made)):
                data = data.transform(passes)
        return data


class ToBackendStage(_LoweringStage):
    kind = StageType.TO_BACKEND
    after = (StageType.TO_EDGE, StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)

    def __init__(self, partitioners: list[Any] | dict[str, list[Any]] | None = None) -> None:
        super().__init__()
        self._partitioners = partitioners

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> ToBackendStage:
        return cls((lowering_recipe or LoweringRecipe()).partitioners)

    def apply(self, data: EdgeProgramManager, context: dict[str, Any]) -> Any:
        if data is None:
            raise RuntimeError("Edge program manager is not set.")
        partitioners = self._partitioners
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

    def __init__(self, backend_config: ExecutorchBackendConfig | None) -> None:
        super().__init__()
        self._backend_config = backend_config

    @classmethod
    def of(cls, recipe: ExportRecipe) -> Stage:
        return cls(recipe.executorch_backend_config)

    def apply(self, data: EdgeProgramManager, context: dict[str, Any]) -> Any:
        if data is None:
            raise RuntimeError("Edge program manager is not set.")
        config = self._backend_config or ExecutorchBackendConfig()
        named_data = context.get("named_data")
        return data.to_executorch(config, **({"named_data": named_data} if named_data else {}))


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
