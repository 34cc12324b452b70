"""Run a program from Python.

    from executorch.runtime import Runtime

    program = Runtime.get().load_program("model.pte")
    outputs = program.load_method("forward").execute([x])

Needs neither torch nor NumPy. What goes in and what comes out is described in
`executorch.extension.pybindings.portable_lib`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

from executorch.extension.pybindings import portable_lib
from executorch.extension.pybindings.portable_lib import (
    ExecuTorchMethod,
    ExecuTorchProgram,
    MethodMeta,
    TensorInfo,
    Verification,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BackendRegistry",
    "Method",
    "MethodMeta",
    "OperatorRegistry",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]


class Method:
    """A loaded method: its memory, its state, one run at a time."""

    def __init__(self, method: ExecuTorchMethod) -> None:
        self._method = method

    def execute(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Run on one flat sequence of inputs; returns the list of outputs.

        Raises RuntimeError when an input does not fit or an operator fails.
        """
        return self._method.call(inputs)

    @property
    def metadata(self) -> MethodMeta:
        return self._method.method_meta()


class Program:
    """A program in memory; loading one of its methods makes it runnable."""

    def __init__(self, program: ExecuTorchProgram, data: bytes | None) -> None:
        self._program = program
        self._data = data
        names = (program.get_method_name(i) for i in range(program.num_methods()))
        self._methods: dict[str, Method | None] = dict.fromkeys(names)

    @property
    def method_names(self) -> set[str]:
        return set(self._methods)

    def load_method(self, name: str) -> Method | None:
        """The method of that name, loaded at the first call. Raises KeyError for an unknown one."""
        if name not in self._methods:
            raise KeyError(f"no method {name!r} in the program; it has {sorted(self._methods)}")
        if self._methods[name] is None:
            self._methods[name] = Method(self._program.load_method(name))
        return self._methods[name]

    def metadata(self, method_name: str) -> MethodMeta:
        return self._program.method_meta(method_name)

    def write_etdump_result_to_file(self, etdump_path: str, debug_buffer_path: str) -> None:
        self._program.write_etdump_result_to_file(etdump_path, debug_buffer_path)


class BackendRegistry:
    """The backends compiled into this runtime."""

    def __init__(self, legacy_module: ModuleType) -> None:
        self._legacy_module = legacy_module

    @property
    def registered_backend_names(self) -> list[str]:
        return self._legacy_module._get_registered_backend_names()

    def is_available(self, backend_name: str) -> bool:
        return self._legacy_module._is_available(backend_name)


class OperatorRegistry:
    """The operators compiled into this runtime."""

    def __init__(self, legacy_module: ModuleType) -> None:
        self._legacy_module = legacy_module

    @property
    def operator_names(self) -> set[str]:
        return set(self._legacy_module._get_operator_names())


class Runtime:
    """The one runtime of this process: `Runtime.get()`."""

    @staticmethod
    @functools.cache
    def get() -> Runtime:
        return Runtime(legacy_module=portable_lib)

    def __init__(self, *, legacy_module: ModuleType) -> None:
        self.backend_registry = BackendRegistry(legacy_module)
        self.operator_registry = OperatorRegistry(legacy_module)
        self._legacy_module = legacy_module

    def load_program(
        self,
        data: bytes | bytearray | BinaryIO | Path | str,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Path | str | None = None,
    ) -> Program:
        """Load a .pte: a path (memory-mapped), its bytes, or a binary file object.

        data_path   a .ptd file with weights the program leaves outside
        Raises FileNotFoundError, or RuntimeError when the program is damaged.
        """
        options = {
            "enable_etdump": enable_etdump,
            "debug_buffer_size": debug_buffer_size,
            "program_verification": verification,
            "data_path": None if data_path is None else os.fspath(data_path),
        }
        if isinstance(data, (str, os.PathLike)):
            return Program(self._legacy_module._load_program(os.fspath(data), **options), None)
        if hasattr(data, "read"):
            data = data.read()
        if not isinstance(data, (bytes, bytearray)):
            raise TypeError(
                "load_program: expected bytes, bytearray, a path to a .pte file or a binary file "
                f"object, got {type(data).__name__}"
            )
        content = bytes(data)
        return Program(self._legacy_module._load_program_from_buffer(content, **options), content)
