"""How a model becomes a program, as data: what is quantized, who gets which operators."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum, EnumMeta, StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from executorch.export.types import StageType

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from executorch.exir import EdgeCompileConfig, EdgeProgramManager, ExecutorchBackendConfig
    from executorch.exir.backend.partitioner import Partitioner

    GraphPass = Callable[[torch.fx.GraphModule], torch.fx.GraphModule]

_R = TypeVar("_R")


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
    calibration_inputs_fn    what calibrates; None: the example inputs
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
    """Who runs what. `partitioners` for all methods, or by method name."""

    partitioners: list[Partitioner] | dict[str, list[Partitioner]] | None = None
    edge_transform_passes: list[Callable[[str, ExportedProgram], Any]] | None = None
    edge_manager_transform_passes: list[Callable[[EdgeProgramManager], Any]] | None = None
    edge_compile_config: EdgeCompileConfig | None = None


@dataclass
class ExportRecipe:
    """Everything `executorch.export.export` does to a model. The defaults: the portable program.

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
            raise ValueError(f"expected a RecipeType, found {recipe!r}")
        return recipe_registry.create_recipe(recipe, recipe.get_backend_name(), **kwargs)

    @classmethod
    def combine(cls, recipes: list[ExportRecipe], recipe_name: str | None = None) -> ExportRecipe:
        """One recipe for several backends: quantizers, passes and partitioners one after the other.

        Raises ValueError where the recipes want different things of which there can be one only.
        """
        if not recipes:
            raise ValueError("combine: expected at least one recipe")
        name = recipe_name or "_".join(r.name for r in recipes if r.name) or None
        return replace(_combined(recipes, ignore=("name",)), name=name)


def _combined(parts: Sequence[_R], ignore: tuple[str, ...] = ()) -> _R:
    first = parts[0]
    values = {
        f.name: _merge(f"{type(first).__name__}.{f.name}", [getattr(p, f.name) for p in parts])
        for f in fields(first)  # type: ignore[arg-type]
        if f.name not in ignore
    }
    return replace(first, **values)  # type: ignore[type-var, return-value]


def _merge(name: str, values: list[Any]) -> Any:
    given = [v for v in values if v is not None]
    if not given:
        return None
    if all(isinstance(v, list) for v in given) and not name.endswith("pipeline_stages"):
        return [item for v in given for item in v]
    if all(isinstance(v, (QuantizationRecipe, LoweringRecipe)) for v in given):
        return _combined(given)
    if any(v != given[0] for v in given):
        raise ValueError(f"combine: the recipes differ in {name}: {given[0]!r} and {given[1]!r}")
    return given[0]
