"""From a model to a program in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.export import ExportedProgram

from executorch.export.recipe import ExportRecipe
from executorch.export.stages import STAGES, PipelineArtifact, Stage
from executorch.export.types import StageType

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
    from executorch.exir.schema import Program

Quantize = Literal["int8", "int4"]

_DEFAULT = [
    StageType.SOURCE_TRANSFORM,
    StageType.QUANTIZE,
    StageType.TORCH_EXPORT,
    StageType.TO_EDGE_TRANSFORM_AND_LOWER,
    StageType.TO_EXECUTORCH,
]
_BEFORE_EXPORTED = {StageType.SOURCE_TRANSFORM, StageType.QUANTIZE, StageType.TORCH_EXPORT}


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
    backend: Literal["xnnpack"] | None = None,
) -> ExportSession:
    """Make a program of `model`; the session has it, and every stage before it.

        export(model, [(x,)], quantize="int8").save_to_pte("model.pte")

    model           a module, an ExportedProgram or the path of a saved one; or a dict by method
    example_inputs  a list of tuples of arguments, or a dict of such lists by method; one tuple
                    counts as a list of one. The first is exported with, all calibrate
    export_recipe   everything in detail; None: the portable program, or what `quantize` and
                    `backend` say
    dynamic_shapes  as for torch.export, or a dict of that by method
    quantize        "int8": weights of linear layers in 8 bits by output channel; "int4": in 4 bits
                    by groups of 32. Activations in 8 bits at run time. Implies backend="xnnpack"
    backend         "xnnpack": in float32
    Raises ValueError for arguments that contradict each other.
    """
    if quantize is not None or backend is not None:
        if export_recipe is not None:
            raise ValueError("give either export_recipe or quantize and backend")
        export_recipe = _ready_made(quantize, backend or "xnnpack")
    session = ExportSession(
        model,
        example_inputs,
        export_recipe or ExportRecipe(strict=False),
        name=name,
        dynamic_shapes=dynamic_shapes,
        constant_methods=constant_methods,
        artifact_dir=artifact_dir,
        generate_etrecord=generate_etrecord,
    )
    session.export()
    return session


def _ready_made(quantize: str | None, backend: str) -> ExportRecipe:
    if backend != "xnnpack":
        raise ValueError(f"backend: expected 'xnnpack', found {backend!r}")
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    recipes = {
        None: XNNPackRecipeType.FP32,
        "int8": XNNPackRecipeType.PT2E_INT8_DYNAMIC_PER_CHANNEL,
        "int4": XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL,
    }
    if quantize not in recipes:
        raise ValueError(f"quantize: expected 'int8' or 'int4', found {quantize!r}")
    return ExportRecipe.get_recipe(recipes[quantize])


class ExportSession:
    """One export: stages run in order, and their results can be looked at."""

    def __init__(
        self,
        model: Any,
        example_inputs: Any,
        export_recipe: ExportRecipe,
        name: str | None = None,
        dynamic_shapes: Any = None,
        constant_methods: dict[str, Any] | None = None,
        artifact_dir: str | None = None,
        generate_etrecord: bool = False,
    ) -> None:
        self._name = name or export_recipe.name or "model"
        self._models = _by_method(model, isinstance(model, dict))
        self._inputs = _inputs_by_method(example_inputs, self._models)
        by_method = isinstance(dynamic_shapes, dict) and (
            isinstance(model, dict) or set(dynamic_shapes) == {"forward"}
        )
        self._recipe = export_recipe
        self._artifact_dir = artifact_dir
        self._context = {
            "example_inputs": self._inputs,
            "dynamic_shapes": _by_method(dynamic_shapes, by_method),
            "constant_methods": constant_methods,
            "export_recipe": export_recipe,
            "session_name": self._name,
            "artifact_dir": artifact_dir,
            "generate_etrecord": generate_etrecord,
        }
        exported = all(isinstance(m, ExportedProgram) for m in self._models.values())
        stages = export_recipe.pipeline_stages or _DEFAULT
        self._pipeline = [s for s in stages if not (exported and s in _BEFORE_EXPORTED)]
        if not exported and not any(s in _BEFORE_EXPORTED for s in self._pipeline):
            raise ValueError("a module needs the stage torch_export, or give an ExportedProgram")
        if not exported and any(not self._inputs.get(m) for m in self._models):
            raise ValueError("example_inputs: expected a tuple of arguments for every method")
        self._stages: dict[StageType, Stage] = {}
        for make in STAGES:
            stage = make()
            self._stages[stage.stage_type] = stage
        self._artifacts: dict[StageType, PipelineArtifact] = {}

    def register_stage(self, stage_type: StageType, stage: Stage) -> None:
        """Run `stage` where the pipeline names that type."""
        self._stages[stage_type] = stage

    def get_registered_stage(self, stage_type: StageType) -> Stage | None:
        return self._stages.get(stage_type)

    def get_all_registered_stages(self) -> dict[StageType, Stage]:
        return dict(self._stages)

    def export(self) -> None:
        """Run the pipeline. Raises ValueError if its stages do not follow each other."""
        self._check_pipeline()
        artifact = PipelineArtifact(self._models, self._context)
        for kind in self._pipeline:
            self._stages[kind].run(artifact)
            artifact = self._artifacts[kind] = self._stages[kind].get_artifacts()
        if self._context["generate_etrecord"] and self._artifact_dir:
            self.get_etrecord().save(str(Path(self._artifact_dir) / f"{self._name}.etrecord"))

    def _check_pipeline(self) -> None:
        before: StageType | None = None
        for kind in self._pipeline:
            stage = self._stages.get(kind)
            if stage is None:
                raise ValueError(f"no stage {kind!r} is registered")
            if before is None and not stage.can_start_pipeline:
                raise ValueError(f"a pipeline cannot begin with {kind.value}")
            if before is not None and before not in stage.valid_predecessor_stages:
                allowed = [s.value for s in stage.valid_predecessor_stages]
                raise ValueError(f"{kind.value} cannot follow {before.value}; it follows {allowed}")
            before = kind

    def _result(self, *kinds: StageType) -> Any:
        for kind in kinds:
            if kind in self._artifacts:
                return self._artifacts[kind].data
        raise RuntimeError(f"none of the stages {[k.value for k in kinds]} has run")

    def get_stage_artifacts(self) -> dict[StageType, PipelineArtifact]:
        return dict(self._artifacts)

    def get_exported_program(self, method_name: str = "forward") -> ExportedProgram:
        if StageType.TORCH_EXPORT not in self._artifacts and isinstance(
            self._models.get(method_name), ExportedProgram
        ):
            return self._models[method_name]  # type: ignore[no-any-return]
        return self._result(StageType.TORCH_EXPORT)[method_name]  # type: ignore[no-any-return]

    def get_edge_program_manager(self) -> EdgeProgramManager:
        return self._result(  # type: ignore[no-any-return]
            StageType.TO_BACKEND,
            StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
            StageType.TO_EDGE_TRANSFORM_AND_LOWER,
            StageType.TO_EDGE,
        )

    def get_executorch_program_manager(self) -> ExecutorchProgramManager:
        return self._result(StageType.TO_EXECUTORCH)  # type: ignore[no-any-return]

    def get_executorch_program(self) -> Program:
        return self.get_executorch_program_manager().executorch_program

    def get_pte_buffer(self) -> bytes:
        return self.get_executorch_program_manager().buffer

    def save_to_pte(self, output_name: str) -> None:
        """Write the program; `.pte` is added to a name without it."""
        name = output_name if output_name.endswith(".pte") else output_name + ".pte"
        self.get_executorch_program_manager().save(name)

    def get_example_input(self, method_name: str = "forward") -> tuple[torch.Tensor, ...]:
        if not self._inputs.get(method_name):
            raise KeyError(f"no example inputs for method {method_name!r}")
        return self._inputs[method_name][0]  # type: ignore[no-any-return]

    def get_etrecord(self) -> Any:
        return self.get_executorch_program_manager().get_etrecord()

    def run_method(
        self, method_name: str = "forward", example_inputs: tuple[Any, ...] | None = None
    ) -> Sequence[Any]:
        """The outputs of the program in the C++ runtime, a flat sequence."""
        from torch.utils._pytree import tree_flatten

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
            print(info.get_summary())
            print(tabulate(info.get_operator_delegation_dataframe(), headers="keys"))


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
        result[name] = [value] if isinstance(value, tuple) else list(value)
        if not all(isinstance(i, tuple) for i in result[name]):
            raise ValueError(f"example_inputs of {name!r}: expected tuples of arguments")
    return result
