"""Parts of a model in another's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


def replace_modules(model: nn.Module, old: type, twin: Callable[[Any], nn.Module]) -> nn.Module:
    """`model` with every `old` below it replaced by its twin."""
    for name, child in model.named_children():
        if isinstance(child, old):
            setattr(model, name, twin(child))
        else:
            replace_modules(child, old, twin)
    return model
