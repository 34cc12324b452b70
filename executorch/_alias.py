"""Modules under a second name: the same object, not a second copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class AliasLoader(Loader):
    """Loads the module `home` for whatever name is asked for; `home` keeps its own identity."""

    def __init__(self, home: str) -> None:
        self.home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            module = import_module(self.home)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{spec.name} is now {self.home}, which cannot be imported: {error}", name=spec.name
            ) from error
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class AliasFinder(MetaPathFinder):
    """Of modules of a package that other modules of it hold: name -> the module's name."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self.package, self.homes = package, homes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != self.package or name not in self.homes:
            return None
        return ModuleSpec(fullname, AliasLoader(f"{package}.{self.homes[name]}"))
