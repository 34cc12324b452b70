"""Ahead of time: PyTorch programs to `.pte`.

    edge = to_edge(torch.export.export(module, inputs))
    edge.to_executorch().save("module.pte")

Names are resolved on first use, so that importing this package costs little.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from executorch.exir._needs_torch import need_torch

_HOMES = {
    "executorch.exir.capture._config": (
        "CaptureConfig",
        "EdgeCompileConfig",
        "ExecutorchBackendConfig",
        "ExirDynamoConfig",
    ),
    "executorch.exir.capture._capture": (
        "CallSpec",
        "_capture_legacy_do_not_use",
        "capture_multiple",
    ),
    "executorch.exir.emit": ("EmitterOutput", "emit_program"),
    "executorch.exir.program._legacy": (
        "ExecutorchProgram",
        "ExirExportedProgram",
        "MultiMethodExecutorchProgram",
        "MultiMethodExirExportedProgram",
        "_to_edge",
        "multi_method_program_to_executorch",
    ),
    "executorch.exir.program._executorch": (
        "ExecutorchProgramManager",
        "edge_to_executorch_passes",
    ),
    "executorch.exir.program._program": (
        "EdgeProgramManager",
        "to_edge",
        "to_edge_transform_and_lower",
    ),
    "executorch.exir.incremental": ("NotCausalError", "make_incremental"),
    "executorch.exir.recurrent": ("dynamic_steps",),
    "executorch.exir.pass_base": ("Value",),
    "executorch.exir.serde.serialize": ("load", "save"),
    "torch.export": ("ExportGraphSignature", "ExportedProgram"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*sorted(_HOME_OF), "capture"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        module = f"{__name__}.{name}"
        if name.startswith("__") or importlib.util.find_spec(module) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(module)  # as `exir.memory_planning`, not imported before
    need_torch(__name__)
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
