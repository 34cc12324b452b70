"""Tools that show what a program does; names resolve on first use."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "BundledProgram": "bundled_program.core",
    "ETRecord": "etrecord",
    "Inspector": "inspector",
    "TimeScale": "inspector",
    "generate_etrecord": "etrecord",
    "parse_etrecord": "etrecord",
}
_MODULES = ("backend_debug", "bundled_program", "debug_format", "etdump", "etrecord", "inspector")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
