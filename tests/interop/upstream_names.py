"""A pytest plugin: modules in test folders, and what upstream's tests need beside them, come from
its wheel; everything else that they import is this project's.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

TEST_FOLDERS = {"test", "tests"}
TOOLS = {"parameterized"}  # packages of its tests


def site_packages() -> Path:
    python = Path(os.environ["EXECUTORCH_UPSTREAM_PYTHON"])
    (folder,) = python.parents[1].glob("lib/python3*/site-packages")
    return folder


def holds_tests_only(folder: Path) -> bool:
    modules = list(folder.glob("*.py"))
    return bool(modules) and all(module.name.startswith("test_") for module in modules)


class UpstreamTests(MetaPathFinder):
    """Asked first: a test compares with what its own helpers write. No module outside of test
    folders is replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parts = name.split(".")
        base = self.folder.joinpath(*parts)
        of_tests = parts[0] == "executorch" and (
            TEST_FOLDERS & set(parts) or parts[-1].startswith("test_") or holds_tests_only(base)
        )
        if not of_tests and parts[0] not in TOOLS:
            return None
        if base.with_suffix(".py").exists():
            return importlib.util.spec_from_file_location(name, base.with_suffix(".py"))
        if base.is_dir():
            init = base / "__init__.py"
            if init.exists():
                return importlib.util.spec_from_file_location(
                    name, init, submodule_search_locations=[str(base)]
                )
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(base)]
            return spec
        return None


sys.meta_path.insert(0, UpstreamTests(site_packages()))
