"""Scripts of the examples as modules, which no other test then finds under their short names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """A new module from the file; while it runs, it finds the scripts beside it."""
    name = f"loaded_{path.parent.name}_{path.stem}"  # no script beside it is called so
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    siblings = {file.stem for file in path.parent.glob("*.py")} - {path.stem}
    hidden = {name: sys.modules.pop(name) for name in siblings & sys.modules.keys()}
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
        for name in siblings & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(hidden)
    return module
