"""The import hook behind modules.map. It imports next to nothing.

A row for a module becomes an alias in sys.modules when it is first imported. A row for a name
becomes an attribute that its module resolves when it is first asked for; torch.export's `export`
and `ExportedProgram` also learn to take what they took in former releases.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from os.path import dirname, join

from executorch._alias import AliasLoader

_MODULES: dict[str, str] = {}  # old module -> home
_NAMES: dict[str, dict[str, tuple[str, str]]] = {}  # module -> old name -> (home, name)


def _read_map() -> None:
    path = join(dirname(__file__), "modules.map")
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    for old, home in rows:
        if ":" in old:
            module, name = old.split(":")
            target, target_name = home.split(":")
            _NAMES.setdefault(module, {})[name] = (target, target_name)
        else:
            _MODULES[old] = home


def home_of(name: str) -> str | None:
    """The module that an old module name stands for; None for all others. Longest row first."""
    head, tail = name, ""
    while head:
        if head in _MODULES:
            return _MODULES[head] + tail
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return None


class _PatchLoader:
    """Runs a module's own loader, then adds the old names."""

    def __init__(self, loader) -> None:  # type: ignore[no-untyped-def]
        self.loader = loader

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        return self.loader.create_module(spec)

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        patch(module)


class _Finder:
    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if not fullname.startswith("torch."):
            return None
        home = home_of(fullname)
        if home is not None:
            if self._real_spec(fullname, path, target) is not None:
                return None
            return ModuleSpec(fullname, AliasLoader(home), is_package=True)
        if fullname in _NAMES:
            spec = self._real_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _PatchLoader(spec.loader)
            return spec
        return None

    def _real_spec(self, fullname, path, target):  # type: ignore[no-untyped-def]
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None


def patch(module) -> None:  # type: ignore[no-untyped-def]
    """Add the old names of one module, resolved on first use."""
    rows = _NAMES[module.__name__]
    inherited = module.__dict__.get("__getattr__")

    def resolve(name: str):  # type: ignore[no-untyped-def]
        if name in rows:
            home, home_name = rows[name]
            value = getattr(import_module(home), home_name)
            setattr(module, name, value)
            return value
        if inherited is not None:
            return inherited(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    module.__getattr__ = resolve
    if module.__name__ == "torch.export":
        _accept_old_arguments(module)


def _accept_old_arguments(torch_export) -> None:  # type: ignore[no-untyped-def]
    today = torch_export.export

    def export(mod, *args, **kwargs):  # type: ignore[no-untyped-def]
        from executorch.compat import torch_export as shim

        return shim.export(mod, *args, **kwargs)

    export.__doc__, export.__wrapped__ = today.__doc__, today  # type: ignore[attr-defined]
    export.__module__ = today.__module__
    torch_export.export = export

    def call(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        from executorch.compat import torch_export as shim

        return shim.call_program(self, *args, **kwargs)

    torch_export.ExportedProgram.__call__ = call


def install() -> None:
    """Add the hook, once; modules that are imported already are patched at once."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    _read_map()
    sys.meta_path.insert(0, _Finder())
    for name in _NAMES:
        module = sys.modules.get(name)
        if module is not None:
            patch(module)
