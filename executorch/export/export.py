"""From a model to a program in one call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.export import ExportedProgram

from executorch.exir.torch_internals import original_module
from executorch.export.check_recipe import check_recipe
from executorch.export.recipe import (
    AOQuantizationConfig,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
)
from executorch.export.stages import STAGES, PipelineArtifact, Stage
from executorch.export.types import StageType

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
    from executorch.exir.schema import Program

Quantize = Literal["int8", "int8-static", "int8-weights", "int4"]
Backend = Literal["xnnpack", "portable"]

_DEFAULT = [
    StageType.SOURCE_TRANSFORM,
    StageType.QUANTIZE,
    StageType.TORCH_EXPORT,
    StageType.TO_EDGE_TRANSFORM_AND_LOWER,
    StageType.TO_EXECUTORCH,
]
# By the kind of what is given, the stages that it has been through.
_NOT_FOR: dict[str, set[StageType]] = {
    "nn.Module": set(),
    "GraphModule": {StageType.SOURCE_TRANSFORM, StageType.QUANTIZE},
    "ExportedProgram": {StageType.SOURCE_TRANSFORM, StageType.QUANTIZE, StageType.TORCH_EXPORT},
}


def export(
    model: Any,
    example_inputs: Any = None,
    export_recipe: ExportRecipe | None = None,
    name: str | None = None,
    dynamic_shapes: Any = None,
    constant_methods: dict[str, Any] | None = None,
    artifact_dir: str | None = None,
    generate_etrecord: bool = False,
    *,
    quantize: Quantize | None = None,
    backend: Backend | None = None,
    incremental: bool = False,
    named_data: Mapping[str, bytes] | None = None,
) -> ExportSession:
    """Make a program of `model`; the session has it, and every stage before it.

        export(model, [(x,)], quantize="int8").save_to_pte("model.pte")

    model           a module, an ExportedProgram or the path of a saved one; or a dict by method
    example_inputs  a list of tuples of arguments, or a dict of such lists by method; one tuple
                    counts as a list of one. The first is exported with, all calibrate
    export_recipe   everything in detail; None: the portable program, or what `quantize` and
                    `backend` say
    dynamic_shapes  as for torch.export, or a dict of that by method. The number of steps of
                    recurrent layers (nn.LSTM ...) may be dynamic too, unless the recipe is strict
                    (`executorch.exir.dynamic_steps`)
    quantize        "int8": weights of linear layers in 8 bits by output channel; "int4": in 4 bits
                    by groups of 32. Activations in 8 bits at run time. "int8-static": activations
                    too have scales that are fixed by calibration. Implies backend="xnnpack".
                    "int8-weights": weights as in "int8", activations in floats, for any backend.
                    Recurrent layers (nn.LSTM ...) stay in floats; a warning names them
    backend         "xnnpack": in float32, or as `quantize` says; "portable": the runtime's own
                    kernels run everything
    incremental     a language model keeps what it computed for the tokens it has seen
                    (`executorch.exir.make_incremental`); NotCausalError where that is not proven
    named_data      bytes that the program carries under a name, such as a tokenizer's file
    Raises ValueError for arguments that contradict each other.
    """
    if quantize is not None or backend is not None:
        if export_recipe is not None:
            raise ValueError("give either export_recipe or quantize and backend")
        export_recipe = ready_made(quantize, backend)
    if incremental:
        from executorch.export.incremental import MakeIncremental

        export_recipe = with_transform(export_recipe, MakeIncremental(required=True))
    session = ExportSession(
        model,
        example_inputs,
        export_recipe or ExportRecipe(strict=False),
        name=name,
        dynamic_shapes=dynamic_shapes,
        constant_methods=constant_methods,
        artifact_dir=artifact_dir,
        generate_etrecord=generate_etrecord,
        named_data=named_data,
    )
    session.export()
    return session


def ready_made(quantize: str | None, backend: str | None) -> ExportRecipe:
    """The recipe of that quantization and backend, as for `export`."""
    if backend not in (None, "xnnpack", "portable"):
        raise ValueError(f"backend: expected 'xnnpack' or 'portable', found {backend!r}")
    if quantize is None and backend != "xnnpack":
        return ExportRecipe(strict=False)
    if quantize == "int8-weights":
        return replace(ready_made(None, backend), quantization_recipe=_int8_weights())
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    recipes = {
        None: XNNPackRecipeType.FP32,
        "int8": XNNPackRecipeType.PT2E_INT8_DYNAMIC_PER_CHANNEL,
        "int8-static": XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL,
        "int4": XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR,  # by group
    }
    if not isinstance(quantize, (str, type(None))) or quantize not in recipes:
        known = "'int8', 'int8-static', 'int8-weights' or 'int4'"
        raise ValueError(f"quantize: expected {known}, found {quantize!r}")
    recipe = replace(ExportRecipe.get_recipe(recipes[quantize]), strict=False)
    if backend != "portable":
        return recipe
    return replace(recipe, lowering_recipe=LoweringRecipe())


def _int8_weights() -> QuantizationRecipe:
    from torchao.quantization import IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerAxis

    config = IntxWeightOnlyConfig(torch.int8, PerAxis(0))
    return QuantizationRecipe(ao_quantization_configs=[AOQuantizationConfig(config)])


def with_transform(
    recipe: ExportRecipe | None, transform: Callable[[str, ExportedProgram], ExportedProgram]
) -> ExportRecipe:
    """The recipe, whose exported programs are then transformed."""
    recipe = recipe or ExportRecipe(strict=False)
    return replace(recipe, aten_transform_passes=[*(recipe.aten_transform_passes or ()), transform])


class ExportSession:
    """One export: stages run in order, and their results can be looked at."""

    def __init__(
        self,
        model: Any,
        example_inputs: Any = None,
        export_recipe: ExportRecipe | None = None,
        name: str | None = None,
        dynamic_shapes: Any = None,
        constant_methods: dict[str, Any] | None = None,
        artifact_dir: str | None = None,
        generate_etrecord: bool = False,
        named_data: Mapping[str, bytes] | None = None,
    ) -> None:
        export_recipe = ExportRecipe(strict=False) if export_recipe is None else export_recipe
        check_recipe(export_recipe)
        self._name = name or export_recipe.name or "model"
        models = _by_method(model, isinstance(model, dict))
        self._model = {name: original_module(each) for name, each in models.items()}
        if not self._model:
            raise ValueError("model: the dict has no method")
        self._example_inputs = _inputs_by_method(example_inputs, self._model)
        by_method = isinstance(dynamic_shapes, dict) and (
            isinstance(model, dict) or set(dynamic_shapes) == {"forward"}
        )
        shapes = {} if dynamic_shapes is None else _by_method(dynamic_shapes, by_method)
        if unknown := sorted(shapes.keys() - self._model.keys()):
            raise ValueError(f"dynamic_shapes: no methods {unknown}; there are {[*self._model]}")
        self._recipe = export_recipe
        self._artifact_dir = artifact_dir
        self._run_context = {
            "example_inputs": self._example_inputs,
            "dynamic_shapes": shapes,
            "constant_methods": constant_methods,
            "export_recipe": export_recipe,
            "session_name": self._name,
            "artifact_dir": artifact_dir,
            "generate_etrecord": generate_etrecord,
            "named_data": named_data,
        }
        kinds = {_kind(model) for model in self._model.values()}
        if len(kinds) > 1:
            raise ValueError(f"the methods are of different kinds: {', '.join(sorted(kinds))}")
        (self._input_model_type,) = kinds
        self._pipeline_stages = export_recipe.pipeline_stages or self._get_default_pipeline()
        missing = [m for m in self._model if not self._example_inputs.get(m)]
        if self._input_model_type != "ExportedProgram" and missing:
            raise ValueError(
                f"example_inputs must be provided for method {missing[0]!r}, "
                f"{self._input_model_type} input: a tuple of its arguments"
            )
        self._stages: dict[StageType, Stage] = {
            s.kind: s.of(export_recipe) for s in STAGES if s.kind in self._pipeline_stages
        }
        self._stage_to_artifacts: dict[StageType, PipelineArtifact] = {}

    def _get_default_pipeline(self) -> list[StageType]:
        unwanted = _NOT_FOR[self._input_model_type]
        stages = [kind for kind in _DEFAULT if kind not in unwanted]
        lowering = self._recipe.lowering_recipe
        if lowering is not None and lowering.edge_manager_transform_passes:
            stages.insert(len(stages) - 1, StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)
        return stages

    def register_stage(self, stage_type: StageType, stage: Stage) -> None:
        """Run `stage` where the pipeline names that type."""
        self._stages[stage_type] = stage

    def get_registered_stage(self, stage_type: StageType) -> Stage | None:
        return self._stages.get(stage_type)

    def get_all_registered_stages(self) -> dict[StageType, Stage]:
        return dict(self._stages)

    def export(self) -> None:
        """Run the pipeline. Raises ValueError if its stages do not follow each other."""
        self._validate_pipeline_sequence(self._pipeline_stages)
        self._stage_to_artifacts.clear()  # of a former run; a pipeline that is refused leaves them
        artifact = PipelineArtifact(self._model, self._run_context)
        for kind in self._pipeline_stages:
            start = time.perf_counter()
            self._stages[kind].run(artifact)
            artifact = self._stage_to_artifacts[kind] = self._stages[kind].get_artifacts()
            artifact.add_context("duration_ms", int(1000 * (time.perf_counter() - start)))
        if self._run_context["generate_etrecord"] and self._artifact_dir:
            self.get_etrecord().save(str(Path(self._artifact_dir) / f"{self._name}.etrecord"))

    def _validate_pipeline_sequence(self, stages: list[StageType]) -> None:
        """ValueError that names the first stage out of place."""
        if not stages:
            raise ValueError("Pipeline stages cannot be empty")
        unwanted = [k.name for k in stages if k in _NOT_FOR[self._input_model_type]]
        if unwanted:
            raise ValueError(
                f"Cannot run {', '.join(unwanted)} stage(s) with {self._input_model_type} input: "
                "it has been through them; take them out of pipeline_stages"
            )
        before: StageType | None = None
        for kind in stages:
            stage = self._stages.get(kind)
            if stage is None:
                raise ValueError(f"Stage {kind} not found in registry; see register_stage()")
            if before is None and not stage.can_start_pipeline:
                raise ValueError(f"Stage {kind} cannot start a pipeline")
            allowed = stage.valid_predecessor_stages
            if before is not None and allowed and before not in allowed:
                raise ValueError(
                    f"Invalid transition from {before} to {kind}. "
                    f"Valid predecessors for {kind}: {[s.value for s in allowed]}"
                )
            before = kind
        if self._input_model_type != "ExportedProgram" and StageType.TORCH_EXPORT not in stages:
            later = set(stages) - {StageType.SOURCE_TRANSFORM, StageType.QUANTIZE}
            # A stage of the user's may take modules, or export them.
            if later and all(type(self._stages[kind]) in STAGES for kind in stages):
                raise ValueError("a module needs the stage torch_export before lowering")

    def _result(self, what: str, *kinds: StageType) -> Any:
        for kind in kinds:
            if kind in self._stage_to_artifacts:
                return self._stage_to_artifacts[kind].data
        stages = [k.value for k in kinds]
        raise RuntimeError(f"{what}: none of the stages {stages} has run; call export() first")

    def get_stage_artifacts(self) -> dict[StageType, PipelineArtifact]:
        """Of the newest run: the next one empties it first, and fills it again."""
        return self._stage_to_artifacts

    def get_exported_program(self, method_name: str = "forward") -> ExportedProgram:
        if StageType.TORCH_EXPORT not in self._stage_to_artifacts and isinstance(
            self._model.get(method_name), ExportedProgram
        ):
            return self._model[method_name]  # type: ignore[no-any-return]
        programs = self._result("Exported program is not available", StageType.TORCH_EXPORT)
        if method_name not in programs:
            raise KeyError(f"Method name '{method_name}' not found, only {sorted(programs)}")
        return programs[method_name]  # type: ignore[no-any-return]

    def get_edge_program_manager(self) -> EdgeProgramManager:
        return self._result(  # type: ignore[no-any-return]
            "Edge program manager is not available",
            StageType.TO_BACKEND,
            StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
            StageType.TO_EDGE_TRANSFORM_AND_LOWER,
            StageType.TO_EDGE,
        )

    def get_executorch_program_manager(self) -> ExecutorchProgramManager:
        what = "Executorch program manager is not initialized"
        return self._result(what, StageType.TO_EXECUTORCH)  # type: ignore[no-any-return]

    def get_executorch_program(self) -> Program:
        return self.get_executorch_program_manager().executorch_program

    def get_pte_buffer(self) -> bytes:
        return self.get_executorch_program_manager().buffer

    def save_to_pte(self, output_name: str | os.PathLike[str]) -> None:
        """Write the program; `.pte` is added to a name without it."""
        if not output_name:
            raise AssertionError("save_to_pte: expected the name of a file")
        name = os.fspath(output_name)
        name = name if name.endswith(".pte") else name + ".pte"
        self.get_executorch_program_manager().save(name)

    def get_example_input(self, method_name: str = "forward") -> tuple[torch.Tensor, ...]:
        if method_name not in self._example_inputs:
            raise KeyError(f"Method name '{method_name}' not found in the example inputs")
        if not self._example_inputs[method_name]:
            raise ValueError(f"the example inputs of method '{method_name}' are an empty list")
        return self._example_inputs[method_name][0]  # type: ignore[no-any-return]

    def get_etrecord(self) -> Any:
        return self.get_executorch_program_manager().get_etrecord()

    def run_method(
        self, method_name: str = "forward", example_inputs: tuple[Any, ...] | None = None
    ) -> Sequence[Any]:
        """The outputs of the program in the C++ runtime, a flat sequence."""
        from executorch.exir.torch_internals import tree_flatten
        from executorch.runtime import Runtime

        inputs = self.get_example_input(method_name) if example_inputs is None else example_inputs
        method = Runtime.get().load_program(self.get_pte_buffer()).load_method(method_name)
        assert method is not None
        return method.execute(tree_flatten(inputs)[0])

    def print_delegation_info(self) -> None:
        from tabulate import tabulate

        from executorch.devtools.backend_debug import get_delegation_info

        manager = self.get_edge_program_manager()
        for method in sorted(manager.methods):
            info = get_delegation_info(manager.exported_program(method).graph_module)
            print(f"Delegation info for method '{method}':")
            print(info.get_summary())
            print(tabulate(info.get_operator_delegation_dataframe(), headers="keys"))


def _kind(model: Any) -> str:
    if isinstance(model, ExportedProgram):
        return "ExportedProgram"
    if isinstance(model, torch.fx.GraphModule):
        return "GraphModule"
    if isinstance(model, torch.nn.Module):
        return "nn.Module"
    raise TypeError(f"model: expected a module or an ExportedProgram, found {type(model).__name__}")


def _by_method(value: Any, by_method: bool) -> dict[str, Any]:
    if isinstance(value, str):
        value = torch.export.load(value)
    return dict(value) if by_method else {"forward": value}


def _inputs_by_method(inputs: Any, models: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    if inputs is None:
        return {
            name: [m.example_inputs[0]]
            for name, m in models.items()
            if isinstance(m, ExportedProgram) and m.example_inputs
        }
    given = inputs if isinstance(inputs, dict) else dict.fromkeys(models, inputs)
    result = {}
    for name, value in given.items():
        if name not in models:
            raise ValueError(f"example_inputs: there is no method {name!r}, only {sorted(models)}")
        several = isinstance(value, Iterable) and not isinstance(value, tuple)
        result[name] = list(value) if several else [value]
        if not all(isinstance(i, tuple) for i in result[name]):
            raise ValueError(f"example_inputs of {name!r}: expected tuples of arguments")
    return result
