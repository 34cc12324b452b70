"""What the instructions of a program ask of kernels: operators, and types of their arguments."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from executorch.codegen.selection import SCHEMA, kernel_calls, read_program, scalar_types


@dataclass(frozen=True)
class _IOMetaData:
    """One argument of a call; `dtype` and `dim_order` are those of a tensor."""

    kernel_type: int  # its place in the union KernelTypes of program.fbs
    _dtype: int | None = None
    _dim_order: tuple[int, ...] = ()

    @property
    def dtype(self) -> int:
        if self._dtype is None:
            raise RuntimeError(f"an argument of kernel type {self.kernel_type} has no dtype")
        return self._dtype

    @property
    def dim_order(self) -> list[int]:
        if self._dtype is None:
            raise RuntimeError(f"an argument of kernel type {self.kernel_type} has no dim order")
        return list(self._dim_order)


def _get_program_from_buffer(buffer: bytes) -> dict[str, Any]:
    """The program in the bytes of a .pte, for the functions below. Needs flatc."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pte"
        path.write_bytes(buffer)
        return read_program(path)


def _get_program_operators(program: dict[str, Any]) -> list[str]:
    """Each operator that is called, once, in the order of the calls."""
    return list(dict.fromkeys(name for name, _ in _calls(program)))


def _get_io_metadata_for_program_operators(
    program: dict[str, Any],
) -> dict[str, set[tuple[_IOMetaData, ...]]]:
    """By operator: the arguments of its calls, each combination once."""
    found: dict[str, set[tuple[_IOMetaData, ...]]] = {}
    for name, arguments in _calls(program):
        found.setdefault(name, set()).add(tuple(map(_metadata, arguments)))
    return found


def _calls(program: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (name, [plan["values"][i] for i in arguments])
        for plan in program["execution_plan"]
        for name, arguments in kernel_calls(plan)
    ]


def _metadata(value: dict[str, Any]) -> _IOMetaData:
    kind = value.get("val_type", "NONE")
    number = _kernel_types()[kind]
    if kind != "Tensor":
        return _IOMetaData(number)
    tensor = value["val"]
    dtype = scalar_types()[tensor["scalar_type"]]
    return _IOMetaData(number, dtype, tuple(tensor.get("dim_order", ())))


@cache
def _kernel_types() -> dict[str, int]:
    text = SCHEMA.read_text(encoding="utf-8")
    found = re.search(r"^union KernelTypes \{(.*?)^\}", text, re.M | re.S)
    assert found is not None
    return {name: i for i, name in enumerate(["NONE", *re.findall(r"\w+", found[1])])}
