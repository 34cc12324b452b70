"""Quantization in one call, by the ways that XNNPACK runs fastest."""

from __future__ import annotations

import copy
from typing import Any, Literal

import torch
from torch import nn


def quantize_model(
    model: nn.Module,
    example_inputs: tuple[Any, ...],
    quantize: Literal["int8", "int4"],
    dynamic_shapes: Any = None,
    group_size: int = 32,
) -> nn.Module:
    """A quantized copy of `model`, ready for torch.export; `model` itself stays as it is.

    quantize  "int8": linear layers get int8 weights, one scale per output channel, and activations
              quantized by their range at run time (pt2e).
              "int4": weights of four bits with a scale per `group_size` inputs, activations of
              eight bits quantized token by token (torchao). Linear layers whose inputs are no
              multiple of the group keep their floats.
    dynamic_shapes  as for torch.export; "int8" captures the model, and keeps these free.
    Raises ValueError for another name.
    """
    if quantize == "int8":
        return _int8(model, example_inputs, dynamic_shapes)
    if quantize == "int4":
        return _int4(model, group_size)
    raise ValueError(f"quantize: expected 'int8' or 'int4', found {quantize!r}")


def _int8(model: nn.Module, example_inputs: tuple[Any, ...], dynamic_shapes: Any) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    with torch.no_grad():
        captured = torch.export.export(model, example_inputs, dynamic_shapes=dynamic_shapes)
        prepared = prepare_pt2e(captured.module(), XNNPACKQuantizer().set_global(config))
        prepared(*example_inputs)
        return convert_pt2e(prepared)  # type: ignore[no-any-return]


def _int4(model: nn.Module, group_size: int) -> nn.Module:
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    def is_grouped(module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Linear) and module.in_features % group_size == 0

    quantized = copy.deepcopy(model)
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4,  # type: ignore[attr-defined]
        weight_granularity=PerGroup(group_size),
    )
    quantize_(quantized, config, is_grouped)
    return quantized
