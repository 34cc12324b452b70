"""How a model becomes a program, as data: what is quantized, who gets which operators."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, EnumMeta
from typing import TYPE_CHECKING, Any

from executorch._text_enum import StrEnum
from executorch.export.types import StageType

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchBackendConfig
    from executorch.exir.backend.partitioner import Partitioner

    GraphPass = Callable[[torch.fx.GraphModule], torch.fx.GraphModule]


class Mode(StrEnum):
    DEBUG = "debug"
    RELEASE = "release"


class RecipeTypeMeta(EnumMeta, ABCMeta):
    """Recipe types are enumerations with an abstract method."""


class RecipeType(Enum, metaclass=RecipeTypeMeta):
    """The ready-made recipes of one backend; each backend has an enumeration of its own."""

    @classmethod
    @abstractmethod
    def get_backend_name(cls) -> str:
        """The backend whose provider makes these recipes."""


@dataclass
class AOQuantizationConfig:
    """A torchao configuration and the modules it is for; None: every linear layer."""

    ao_base_config: Any
    filter_fn: Callable[[torch.nn.Module, str], bool] | None = None


@dataclass
class QuantizationRecipe:
    """What is quantized, and by whom.

    quantizers               pt2e: they annotate the captured graph, the first ones first
    ao_quantization_configs  torchao's `quantize_`, before the capture
    is_qat                   fake quantization that `train_fn` trains
    dynamic_batch_size       the first dimension of every input stays free while calibrating
    calibration_inputs_fn    returns tuples of arguments to calibrate with; None: the example inputs
    pre_prepare_passes ...   functions of the captured graph, around prepare_pt2e and convert_pt2e
    """

    quantizers: list[Any] | None = None
    ao_quantization_configs: list[AOQuantizationConfig] | None = None
    is_qat: bool = False
    dynamic_batch_size: bool = False
    calibration_inputs_fn: Callable[[], Iterable[tuple[Any, ...]]] | None = None
    train_fn: Callable[[torch.fx.GraphModule], None] | None = None
    pre_prepare_passes: list[GraphPass] | None = None
    post_prepare_passes: list[GraphPass] | None = None
    pre_convert_passes: list[GraphPass] | None = None
    post_convert_passes: list[GraphPass] | None = None

    def get_quantizers(self) -> list[Any] | None:
        return self.quantizers


@dataclass
class LoweringRecipe:
    """Which backends take which calls, and the passes on edge programs.

    partitioners   of all methods, or lists by method name; each claims calls in turn
    edge_transform_passes
                   functions (method name, program) -> passes to run before the partitioners
    edge_manager_transform_passes
                   functions (EdgeProgramManager) -> passes to run on all its methods, in the stage
                   EDGE_PROGRAM_MANAGER_TRANSFORM
    """

    partitioners: list[Partitioner] | dict[str, list[Partitioner]] | None = None
    edge_transform_passes: list[Callable[[str, ExportedProgram], Any]] | None = None
    edge_manager_transform_passes: list[Callable[[EdgeProgramManager], Any]] | None = None
    edge_compile_config: EdgeCompileConfig | None = None


@dataclass
class ExportRecipe:
    """Everything `executorch.export.export` does to a model. The defaults: the portable program.

    aten_transform_passes  functions (method name, program) -> program, after torch.export
    source_transform_in_place  torchao changes the given modules instead of copies
    pipeline_stages  None: source transform, quantize, export, lower, to_executorch
    strict           as for torch.export
    """

    name: str | None = None
    quantization_recipe: QuantizationRecipe | None = None
    aten_transform_passes: list[Callable[[str, ExportedProgram], ExportedProgram]] | None = None
    source_transform_in_place: bool = False
    lowering_recipe: LoweringRecipe | None = None
    executorch_backend_config: ExecutorchBackendConfig | None = None
    pipeline_stages: list[StageType] | None = None
    mode: Mode = Mode.RELEASE
    strict: bool = True

    @classmethod
    def get_recipe(cls, recipe: RecipeType, **kwargs: Any) -> ExportRecipe:
        """The ready-made recipe of that type. Raises ValueError if no backend makes it."""
        from executorch.export.recipe_registry import recipe_registry

        if not isinstance(recipe, RecipeType):
            raise ValueError(f"Invalid recipe type: {recipe!r}, expected a RecipeType")
        backend = recipe.get_backend_name()
        made = recipe_registry.create_recipe(recipe, backend, **kwargs)
        if made is None:
            known = [r.value for r in recipe_registry.get_supported_recipes(backend)]
            raise ValueError(
                f"Recipe '{recipe.value}' not supported by '{backend}'. Supported: {known}"
            )
        return made

    @classmethod
    def combine(cls, recipes: list[ExportRecipe], recipe_name: str | None = None) -> ExportRecipe:
        """One recipe for several backends: quantizers, passes, partitioners and calibration inputs
        one after the other; of one recipe that itself.

        Raises ValueError where the recipes want different things of which there can be one only.
        """
        from executorch.export.check_recipe import check_recipe
        from executorch.export.combine import combined

        if not recipes:
            raise ValueError("Recipes cannot be empty: combine needs at least one")
        if isinstance(recipes, ExportRecipe):
            raise TypeError("combine: expected a list of recipes, found an ExportRecipe")
        for i, recipe in enumerate(recipes):
            check_recipe(recipe, f"recipes[{i}]")
        if len(recipes) == 1:
            return recipes[0]
        name = recipe_name or "_".join(r.name for r in recipes if r.name) or None
        return combined(recipes, name)
