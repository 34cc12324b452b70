"""XNNPACK's ready-made recipes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.xnnpack.recipes.xnnpack_recipe_types import XNNPackRecipeType
from executorch.backends.xnnpack.utils.configs import (
    get_xnnpack_edge_compile_config,
    get_xnnpack_executorch_backend_config,
)
from executorch.export.recipe import (
    AOQuantizationConfig,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
)
from executorch.export.recipe_provider import BackendRecipeProvider

_log = logging.getLogger(__name__)

_PT2E = {
    XNNPackRecipeType.PT2E_INT8_DYNAMIC_PER_CHANNEL: (True, True),
    XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL: (True, False),
    XNNPackRecipeType.PT2E_INT8_STATIC_PER_TENSOR: (False, False),
}
_GROUP = 32


class XNNPACKRecipeProvider(BackendRecipeProvider):
    @property
    def backend_name(self) -> str:
        return "xnnpack"

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        return list(XNNPackRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """The only option is `group_size` of TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR, whose
        weights have a scale for so many along a row: 32, or 0 for one by channel.

        Raises ValueError for another option, or a group size that is no count.
        """
        if not isinstance(recipe_type, XNNPackRecipeType):
            return None
        by_group = recipe_type is XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR
        group_size = kwargs.pop("group_size", _GROUP) if by_group else 0
        if not isinstance(group_size, int) or group_size < 0:
            raise ValueError(
                f"{recipe_type.value}: group_size: expected a count, found {group_size!r}"
            )
        if kwargs:
            raise ValueError(f"{recipe_type.value}: unknown options {sorted(kwargs)}")
        quantization = None
        if recipe_type in _PT2E:
            per_channel, dynamic = _PT2E[recipe_type]
            quantization = _pt2e(per_channel, dynamic)
        elif recipe_type.name.startswith("TORCHAO"):
            quantization = _torchao(group_size)
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization,
            lowering_recipe=LoweringRecipe(
                partitioners=[XnnpackPartitioner()],
                edge_compile_config=get_xnnpack_edge_compile_config(),
            ),
            executorch_backend_config=get_xnnpack_executorch_backend_config(),
        )


def _pt2e(per_channel: bool, dynamic: bool) -> QuantizationRecipe:
    config = get_symmetric_quantization_config(is_per_channel=per_channel, is_dynamic=dynamic)
    return QuantizationRecipe(quantizers=[XNNPACKQuantizer().set_global(config)])


def _torchao(group_size: int) -> QuantizationRecipe:
    """0: one scale for each output channel."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig
    from torchao.quantization.granularity import PerAxis, PerGroup

    def fits(module: torch.nn.Module, name: str) -> bool:
        if not isinstance(module, torch.nn.Linear):
            return False
        if isinstance(module, NonDynamicallyQuantizableLinear):  # attention's
            return False
        if group_size and module.in_features % group_size:
            _log.warning(
                "layer %r stays in floats: its %d inputs are no multiple of group_size %d",
                name,
                module.in_features,
                group_size,
            )
            return False
        return True

    granularity = PerGroup(group_size) if group_size else PerAxis(0)
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4,  # type: ignore[attr-defined]
        weight_granularity=granularity,
    )
    return QuantizationRecipe(ao_quantization_configs=[AOQuantizationConfig(config, fits)])
