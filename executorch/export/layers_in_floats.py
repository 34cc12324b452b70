"""Warnings about layers of which a caller may think that they are quantized."""

from __future__ import annotations

import sys
import warnings

import torch


def warn_of_recurrent_layers(model: torch.nn.Module) -> None:
    """Name the layers whose matrix products nothing quantizes."""
    _warn_of(
        model,
        (torch.nn.RNNBase, torch.nn.RNNCellBase),
        "a recurrent layer is one operator when weights are quantized, so that it computes in "
        "floats. Its matrix products are quantized if they are nn.Linear layers.",
    )


def warn_of_attention(model: torch.nn.Module) -> None:
    """Name the attention layers whose weights `quantize_` cannot change."""
    _warn_of(
        model,
        (torch.nn.MultiheadAttention,),
        "torchao's quantize_ changes nn.Linear layers, and this one multiplies by parameters of "
        "its own. They are quantized where pt2e does it (quantize='int8'), or if the model "
        "projects by nn.Linear layers and calls scaled_dot_product_attention.",
    )


def warn_of_conv1d(model: torch.nn.Module) -> None:
    """Name the layers of `transformers` that multiply by weights [in, out]."""
    defined = sys.modules.get("transformers.pytorch_utils")  # else the model has none
    if defined is not None:
        _warn_of(
            model,
            (defined.Conv1D,),
            "only nn.Linear layers are quantized; executorch.export.conv1d.replace_conv1d(model) "
            "makes such of these.",
        )


def _warn_of(model: torch.nn.Module, kinds: tuple[type, ...], reason: str) -> None:
    found = [
        f"{name or 'the model'} ({type(module).__name__})"
        for name, module in model.named_modules()
        if isinstance(module, kinds)
    ]
    if found:
        warnings.warn(f"not quantized: {', '.join(found)}: {reason}", stacklevel=3)


def kinds_of(model: torch.nn.Module) -> list[type]:
    """Types of the model's modules and parameters: `quantize_` replaces these or those."""
    return [*map(type, model.modules()), *map(type, model.parameters())]


def warn_of_nothing_quantized(method: str, model: torch.nn.Module) -> None:
    """Name the linear layers, none of which changed."""
    layers = [
        f"{name or 'the model'} ({module}, {str(module.weight.dtype).removeprefix('torch.')})"
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    ]
    warnings.warn(
        f"not quantized: method {method!r}: no layer is of the kind, type and size that the "
        f"recipe takes; its linear layers are {', '.join(layers) or 'none'}",
        stacklevel=2,
    )
