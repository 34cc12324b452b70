"""Program managers and the steps between the stages of a program; names resolve on first use."""

from __future__ import annotations

from typing import Any

__all__ = [
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "ExecutorchProgram",
    "ExirExportedProgram",
    "_to_edge",
    "edge_to_executorch_passes",
    "get_fake_program",
    "multi_method_program_to_executorch",
    "to_edge",
    "to_edge_transform_and_lower",
]


def __getattr__(name: str) -> Any:
    import executorch.exir

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "get_fake_program":
        from executorch.exir.program._fake_program import get_fake_program

        return get_fake_program
    return getattr(executorch.exir, name)
