"""Weights of language models in fewer bits, by torchao."""

from __future__ import annotations

import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import Granularity, PerAxis, PerGroup

from executorch.examples.models.llama.lora import is_adapter
from executorch.extension.llm.export.config.llm_config import QMODES

_GROUP_SIZE = 128


def quantize(model: nn.Module, qmode: str, group_size: int | None = None) -> nn.Module:
    """Linear layers of `model`, in place.

    qmode  int8: weights of 8 bits per output channel
           8da4w: inputs in 8 bits per token when they run, weights of 4 bits in groups
           8da8w: the same with weights of 8 bits per output channel
           4w: weights of 4 bits in groups
    """
    if qmode not in QMODES:
        raise ValueError(f"qmode is {qmode!r}; expected one of {', '.join(QMODES)}")
    rows = PerAxis(0)
    if qmode == "int8":
        quantize_(model, IntxWeightOnlyConfig(torch.int8, rows), _is_linear)
    elif qmode == "8da8w":
        config = Int8DynamicActivationIntxWeightConfig(torch.int8, rows)
        quantize_(model, config, _is_linear)
    else:
        group = PerGroup(group_size or _GROUP_SIZE)
        _require_groups(model, group.group_size, nn.Linear)
        make = Int8DynamicActivationIntxWeightConfig if qmode == "8da4w" else IntxWeightOnlyConfig
        quantize_(model, make(torch.int4, group), _is_linear)
    return model


def quantize_embeddings(model: nn.Module, settings: str) -> nn.Module:
    """`settings`: "bits,group", 2, 4 or 8 bits; group 0: a scale for each row. A table that the
    output layer shares is copied first: both are quantized, each in its way."""
    if settings.startswith("torchao:"):
        raise ValueError(
            f"embedding_quantize is {settings!r}, whose kernels are not here; expected "
            "'bits,group', such as '4,32'"
        )
    bits, group = (int(part) for part in settings.split(","))
    granularity: Granularity = PerGroup(group) if group else PerAxis(0)
    if group:
        _require_groups(model, group, nn.Embedding)
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.weight = nn.Parameter(module.weight.detach().clone(), requires_grad=False)
    dtype = {2: torch.int2, 4: torch.int4, 8: torch.int8}[bits]
    quantize_(model, IntxWeightOnlyConfig(dtype, granularity), _is_embedding)
    return model


def _is_linear(module: nn.Module, name: str) -> bool:
    return isinstance(module, nn.Linear) and not is_adapter(name)


def _is_embedding(module: nn.Module, name: str) -> bool:
    return isinstance(module, nn.Embedding)


def _require_groups(model: nn.Module, size: int, kind: type[nn.Module]) -> None:
    for name, module in model.named_modules():
        if isinstance(module, kind) and not is_adapter(name) and module.weight.size(1) % size:
            raise ValueError(
                f"{name} has rows of {module.weight.size(1)} numbers, no multiple of the "
                f"group size {size}"
            )
