"""Layers of GPT-2 and its kin in `transformers` as linear layers, which can be quantized."""

from __future__ import annotations

from torch import nn
from transformers.pytorch_utils import Conv1D


def replace_conv1d(model: nn.Module) -> None:
    """Replace all `Conv1D` in `model`: products with weights [in, out] instead of [out, in]."""
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, Conv1D)]
    for name, module in found:
        model.set_submodule(name, _linear(module))


def _linear(module: Conv1D) -> nn.Linear:
    layer = nn.Linear(module.nx, module.nf, device="meta")
    weight = module.weight.detach().t().contiguous()
    layer.weight = nn.Parameter(weight, requires_grad=module.weight.requires_grad)
    layer.bias = module.bias
    return layer.train(module.training)
