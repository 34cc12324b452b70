"""Run a program from Python.

    from executorch.runtime import Module

    with Module("model.pte") as model:
        print(model)   # its methods, with what they take and return
        y = model(x)   # forward; any other method: model.encode(x), model["encode"](x)
        y = model(tokens=x)  # by the names that the exported model has for its parameters

or with upstream's classes, `Runtime.get().load_program("model.pte").load_method("forward")`.

Needs neither torch nor NumPy. What goes in and what comes out is described in
`executorch.extension.pybindings.portable_lib`. A method takes one call at a time; other threads run
Python meanwhile, and other methods.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
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
from executorch.runtime._describe import Signature, methods_html, printable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BackendRegistry",
    "Method",
    "MethodMeta",
    "Module",
    "OperatorRegistry",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]


class Method:
    """A loaded method: its memory, its state, one run at a time."""

    def __init__(
        self,
        method: ExecuTorchMethod,
        argument_names: Callable[[], tuple[list[str], list[str]]] | None = None,
    ) -> None:
        """argument_names   gives the names of inputs and of outputs; none: there are no names"""
        self._method = method
        self._find_names = argument_names

    def execute(self, inputs: Sequence[Any], *, copy_outputs: bool = True) -> Sequence[Any]:
        """Run on one flat sequence of inputs; returns the list of outputs.

        Arrays whose layout the method takes are read where they are. With copy_outputs=False the
        outputs are the method's own memory, which its next run overwrites.
        Raises RuntimeError when an input does not fit or an operator fails.
        """
        return self._method.call(inputs, copy_outputs)

    def set_max_work(self, units: int) -> None:
        """Bound the work that loops of one run may do, so that none runs for ever.

        An operator that runs again costs some 4 units, and one for each 1024 elements of its
        tensors. A run that does more raises RuntimeError.
        """
        self._method.set_max_work(units)

    @property
    def metadata(self) -> MethodMeta:
        return self._method.method_meta()

    @functools.cached_property
    def _argument_names(self) -> tuple[list[str], list[str]]:
        if self._find_names is not None:
            return self._find_names()
        return [""] * self.metadata.num_inputs(), [""] * self.metadata.num_outputs()

    @property
    def input_names(self) -> list[str]:
        """The parameters of the exported model that the inputs are; "" where the program does not
        say, because it was stripped or another exporter wrote it."""
        return list(self._argument_names[0])

    @property
    def output_names(self) -> list[str]:
        """The keys under which the exported model returns its outputs, such as "logits" or
        "cache.0"; "" for results without keys."""
        return list(self._argument_names[1])

    def _in_order(self, inputs: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """`inputs`, and the others by their names. Raises TypeError where that is not what the
        method takes."""
        where = printable(self.metadata.name())
        names = self._argument_names[0]
        known = [name for name in names if name]
        if not known:
            raise TypeError(f"{where}: the program does not say what its inputs are called")
        if unknown := [name for name in named if name not in known]:
            raise TypeError(f"{where} has no input {unknown[0]!r}; it has {', '.join(known)}")
        rest = names[len(inputs) :]
        if twice := [name for name in named if name not in rest]:
            raise TypeError(f"{where}: input {twice[0]!r} was given twice")
        if missing := [name for name in rest if name not in named]:
            raise TypeError(f"{where}: input {missing[0]!r} was not given")
        return [*inputs, *(named[name] for name in rest)]

    def _signature(self) -> Signature:
        return Signature(self.metadata, *self._argument_names)

    def __repr__(self) -> str:
        if self._method is _CLOSED:
            return "<Method, closed>"
        return f"<Method {self._signature()}>"

    def _repr_html_(self) -> str | None:  # None: notebooks show the text
        return None if self._method is _CLOSED else methods_html("Method", [self._signature()])


class Program:
    """A program in memory; loading one of its methods makes it runnable. In a `with` statement it
    and its methods are let go at the end; results stay."""

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
            method = self._program.load_method(name)
            find_names = functools.partial(self._program._argument_names, name)
            self._methods[name] = Method(method, find_names)
        return self._methods[name]

    def metadata(self, method_name: str) -> MethodMeta:
        return self._program.method_meta(method_name)

    def write_etdump_result_to_file(self, etdump_path: str, debug_buffer_path: str) -> None:
        self._program.write_etdump_result_to_file(etdump_path, debug_buffer_path)

    def close(self) -> None:
        """Let go of the file and of the methods' memory. Using the program again is an error."""
        for method in self._methods.values():
            if method is not None:
                method._method = _CLOSED
        self._program = self._data = _CLOSED

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _described(self) -> list[Signature]:
        return [
            Signature(self.metadata(name), *self._program._argument_names(name))
            for name in self._methods
        ]

    def __repr__(self) -> str:
        if self._program is _CLOSED:
            return "<Program, closed>"
        lines = (f"\n  {method}" for method in self._described())
        return f"<Program{''.join(lines)}>"

    def _repr_html_(self) -> str | None:
        return None if self._program is _CLOSED else methods_html("Program", self._described())


class _Closed:
    """What a closed program has in the place of its parts."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError("the program is closed")


_CLOSED: Any = _Closed()


class Module:
    """A program as an object to call: `model(x)` runs forward, `model.encode(x)` the method encode.

    Inputs are given one by one, or by the names of the exported model's parameters. A method with
    one output returns it, others a tuple. Methods are loaded at their first call, each with memory
    of its own, apart from mutable buffers that the program was planned to share
    (`MemoryPlanningPass(share_mutable_buffers=True)`).
    """

    def __init__(
        self,
        data: bytes | bytearray | BinaryIO | Path | str,
        *,
        data_path: Path | str | None = None,
        copy_outputs: bool = True,
    ) -> None:
        """data           a .pte: its path, bytes, or a binary file object
        data_path      a .ptd file with weights the program leaves outside
        copy_outputs   False: outputs are the method's memory, which its next call overwrites
        Raises FileNotFoundError, or RuntimeError when the program is damaged.
        """
        self._program = Runtime.get().load_program(data, data_path=data_path)
        self._copy_outputs = copy_outputs
        self._functions: dict[str, Callable[..., Any]] = {}
        path = os.fspath(data) if isinstance(data, (str, os.PathLike)) else "in memory"
        self._name = printable(os.fsdecode(path))

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self._run(self._load("forward"), inputs, named)

    def _load(self, name: str) -> Method:
        method = self._program.load_method(name)
        assert method is not None
        return method

    def _run(self, method: Method, inputs: Sequence[Any], named: dict[str, Any]) -> Any:
        items = method._in_order(inputs, named) if named else inputs
        outputs = method.execute(items, copy_outputs=self._copy_outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __getitem__(self, name: str) -> Any:
        """The method of that name, as a function. Raises KeyError for an unknown one."""
        if name not in self._functions:
            self._functions[name] = self._function(self._load(name), name)
        return self._functions[name]

    def _function(self, method: Method, name: str) -> Callable[..., Any]:
        def call(*inputs: Any, **named: Any) -> Any:
            return self._run(method, inputs, named)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = str(method._signature())
        return call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also what a copy, which has no attributes yet, is asked for
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if name not in self._program._methods:
            raise AttributeError(f"{type(self).__name__} {self._name} has no method {name!r}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        """The names of the methods, in the program's order."""
        return iter(self._program._methods)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._program._methods]

    @property
    def program(self) -> Program:
        return self._program

    def metadata(self, name: str = "forward") -> MethodMeta:
        """What the method takes and returns. Raises RuntimeError for an unknown one."""
        return self._program.metadata(name)

    def close(self) -> None:
        self._program.close()

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._program).replace("<Program", f"<Module {self._name}", 1)

    def _repr_html_(self) -> str | None:
        if self._program._program is _CLOSED:
            return None
        return methods_html(f"Module {self._name}", self._program._described())


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
