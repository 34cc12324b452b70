"""The former name of `executorch.devtools`: what is below either name is the same module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from executorch._alias import AliasLoader

_HOME = "executorch.devtools"
_RENAMED = {"inspector.inspector": "inspector._inspector"}


class _Below(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        below = fullname.removeprefix(f"{__name__}.")
        if below == fullname:
            return None
        home = f"{_HOME}.{_RENAMED.get(below, below)}"
        return ModuleSpec(fullname, AliasLoader(home), is_package=True)


sys.meta_path.insert(0, _Below())


def __getattr__(name: str) -> Any:
    return getattr(import_module(_HOME), name)
