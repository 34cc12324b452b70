"""Language models to programs. Names are imported when they are asked for: the tensors need no
backend, and the builder does."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ExportableGGUFTensor": "gguf",
    "ExportableInt4Tensor": "int4",
    "LLMEdgeManager": "builder",
}
__all__ = ["ExportableGGUFTensor", "ExportableInt4Tensor", "LLMEdgeManager"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
