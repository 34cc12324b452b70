"""Which operators a build has; the yaml that upstream calls selected_operators.yaml."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DEFAULT = "default"  # kernel key of the kernel for any types and dim orders
LINEAR = "aten::linear.out"

# Programs call LINEAR in their place where the weights are large; lists made for programs of other
# exporters name these alone.
_PRODUCTS = ("aten::addmm.out", "aten::mm.out")

_TYPE_IN_KEY = re.compile(r"[/|](\d+);")  # v1/6;0,1|11;0,1
# What a selection's yaml has at least one of.
_SELECTS = {"operators", "include_all_operators", "et_backends"}
# flatc's spelling of infinity, which is none of JSON's.
_NOT_FINITE = re.compile(r"(: )([-+]?)inf\b")
SCHEMA = Path(__file__).resolve().parents[1] / "schema" / "program.fbs"


class CodegenError(RuntimeError):
    """The message is for the user: what was found, what was expected."""


@contextmanager
def exit_on_error(program: str) -> Iterator[None]:
    """End a command-line tool with its name and the message of what it cannot do."""
    try:
        yield
    except (CodegenError, OSError) as error:
        sys.exit(f"{program}: {error}")


@dataclass
class Selection:
    """Operators by name (ns::name.overload), with the kernel keys asked for and where from.

    dtypes    element types by number, beyond those of the keys, which show one tensor of a list;
              where they stand alone, in a yaml written by hand, the key says nothing
    backends  the ids of the delegates that the programs call
    """

    kernels: dict[str, set[str]] = field(default_factory=dict)
    sources: dict[str, set[str]] = field(default_factory=dict)
    dtypes: dict[str, set[int]] = field(default_factory=dict)
    include_all: bool = False
    backends: set[str] = field(default_factory=set)

    def add(
        self,
        operator: str,
        keys: set[str] | None = None,
        source: str = "None",
        dtypes: set[int] | None = None,
    ) -> None:
        self.kernels.setdefault(operator, set()).update(keys or {DEFAULT})
        self.sources.setdefault(operator, set()).add(source)
        if dtypes:
            self.dtypes.setdefault(operator, set()).update(dtypes)

    def add_linear(self) -> None:
        """Select LINEAR where products are selected, for their element types."""
        products = [operator for operator in _PRODUCTS if operator in self.kernels]
        types = [self.types_of(operator) for operator in products]
        for operator, numbers in zip(products, types, strict=True):
            self.add(LINEAR, source=operator, dtypes=numbers)
        if None in types:
            self.dtypes.pop(LINEAR, None)

    def merge(self, other: Selection) -> None:
        for operator, keys in other.kernels.items():
            for source in other.sources[operator]:
                self.add(operator, keys, source, other.dtypes.get(operator))
        self.include_all = self.include_all or other.include_all
        self.backends |= other.backends

    def selects(self, operator: str) -> bool:
        return self.include_all or operator in self.kernels

    def types_of(self, operator: str) -> set[int] | None:
        """The element types, by number, that `operator` is asked for; None: all of them."""
        keys = self.kernels.get(operator, {DEFAULT})
        listed = self.dtypes.get(operator, set())
        if self.include_all or (DEFAULT in keys and (len(keys) > 1 or not listed)):
            return None
        found = {number for key in keys - {DEFAULT} for number in _TYPE_IN_KEY.findall(key)}
        return listed | set(map(int, found))

    def to_dict(self) -> dict[str, Any]:
        backends = {"et_backends": sorted(self.backends)} if self.backends else {}
        return backends | {
            "build_features": [],
            "custom_classes": [],
            "et_kernel_metadata": {op: sorted(keys) for op, keys in sorted(self.kernels.items())},
            "include_all_non_op_selectives": False,
            "include_all_operators": self.include_all,
            "kernel_metadata": {
                op: [name for name, number in scalar_types().items() if number in numbers]
                for op, numbers in sorted(self.dtypes.items())
            },
            "operators": {
                op: {
                    "debug_info": sorted(self.sources[op]),
                    "include_all_overloads": False,
                    "is_root_operator": True,
                    "is_used_for_training": True,
                }
                for op in sorted(self.kernels)
            },
        }

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(self.to_dict(), default_flow_style=False))

    @staticmethod
    def load(path: Path) -> Selection:
        """A selection's yaml, or a kernel yaml, which selects what it lists."""
        content = load_yaml(path)
        selection = Selection()
        if isinstance(content, list):
            for entry in content:
                selection.add(operator_of(entry, path), source=str(path))
        elif isinstance(content, dict) and content.keys() & _SELECTS:
            operators = content.get("operators") or {}
            if not isinstance(operators, dict):
                raise CodegenError(f"{path}: operators: expected a map by name, found {operators}")
            selection.include_all = bool(content.get("include_all_operators"))
            selection.backends = set(content.get("et_backends") or ())
            metadata = content.get("et_kernel_metadata") or {}
            dtypes = content.get("kernel_metadata") or {}
            for operator, entry in operators.items():
                numbers = {scalar_type(name, str(path)) for name in dtypes.get(operator, ())}
                for source in (entry or {}).get("debug_info") or [str(path)]:
                    selection.add(operator, set(metadata.get(operator, ())), source, numbers)
        else:
            raise CodegenError(f"{path}: neither a selection of operators nor a list of kernels")
        return selection


def load_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise CodegenError(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise CodegenError(f"{path}: no text in UTF-8, as a yaml is") from e
    except yaml.YAMLError as e:
        raise CodegenError(f"{path}: {e}") from e


def load_entries(path: Path) -> list[Any]:
    """The entries of a kernel yaml."""
    entries = load_yaml(path)
    if not isinstance(entries, list):
        raise CodegenError(f"{path}: expected a list of operators")
    return entries


def operator_of(entry: Any, path: Path) -> str:
    """The qualified operator of an entry of a kernel yaml (`op:` or `func:`)."""
    text = entry.get("op") or entry.get("func") if isinstance(entry, dict) else None
    if not isinstance(text, str):
        raise CodegenError(f"{path}: an entry needs `op` or `func`, found {entry!r}")
    name = text.split("(")[0].strip()
    return name if "::" in name else f"aten::{name}"


def of_model(path: Path) -> Selection:
    """What the instructions of a program call, with the types and dim orders of the tensors (the
    first one of a list), and the backends. Needs flatc."""
    selection = Selection()
    for plan in read_program(path)["execution_plan"]:
        selection.backends |= {delegate["id"] for delegate in plan.get("delegates", ())}
        for operator, arguments in kernel_calls(plan):
            key, dtypes = _kernel_key(arguments, plan["values"])
            selection.add(operator, {key}, str(path), dtypes)
    return selection


def kernel_calls(plan: dict[str, Any]) -> Iterator[tuple[str, list[int]]]:
    """The operator of each kernel call of a method, and which of its values are the arguments."""
    names = [_qualified(op) for op in plan["operators"]]
    for chain in plan["chains"]:
        for instruction in chain["instructions"]:
            if instruction["instr_args_type"] == "KernelCall":
                call = instruction["instr_args"]
                yield names[call["op_index"]], call["args"]


def _qualified(operator: dict[str, str]) -> str:
    overload = operator.get("overload", "")
    return operator["name"] + (f".{overload}" if overload else "")


def _kernel_key(args: list[int], values: list[dict[str, Any]]) -> tuple[str, set[int]]:
    """The key, and the types of tensors that it does not show."""
    parts = []
    numbers = []
    for index in args:
        value = values[index]
        items = [value]
        if value.get("val_type") in ("TensorList", "OptionalTensorList"):
            items = [values[i] for i in value["val"]["items"] if i >= 0]
        tensors = [item["val"] for item in items if item.get("val_type") == "Tensor"]
        numbers += [scalar_types()[tensor["scalar_type"]] for tensor in tensors]
        if tensors:
            order = ",".join(str(d) for d in tensors[0].get("dim_order", []))
            parts.append(f"{scalar_types()[tensors[0]['scalar_type']]};{order}")
    key = "v1/" + "|".join(parts) if parts else DEFAULT
    return key, set(numbers) - set(map(int, _TYPE_IN_KEY.findall(key)))


@cache
def scalar_types() -> dict[str, int]:
    """Numbers of element types by their name in programs, FLOAT and so on."""
    text = SCHEMA.with_name("scalar_type.fbs").read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(r"^\s*(\w+) = (\d+)", text, re.M)}


def scalar_type(name: str, where: str) -> int:
    """The number of an element type by the name that C++ has for it, Float and so on."""
    number = scalar_types().get(name.upper())
    if number is None:
        raise CodegenError(f"{where}: no element type {name}")
    return number


def read_program(path: Path) -> dict[str, Any]:
    """The fields of a program, by their names in program.fbs. Needs flatc."""
    flatc = shutil.which("flatc")
    if flatc is None:
        raise CodegenError(f"{path}: reading a program needs flatc (flatbuffers-compiler)")
    if not path.exists():
        raise CodegenError(f"{path}: no such program")
    with tempfile.TemporaryDirectory() as folder:
        command = [flatc, "--json", "--strict-json", "--raw-binary", "--defaults-json"]
        command += ["-o", folder, str(SCHEMA), "--", str(path.resolve())]
        done = subprocess.run(command, capture_output=True, text=True)
        written = next(Path(folder).glob("*.json"), None)
        if done.returncode != 0 or written is None:
            raise CodegenError(f"{path}: not a program: {done.stdout}{done.stderr}".strip())
        text = written.read_text(encoding="utf-8", errors="replace")
        return json.loads(_NOT_FINITE.sub(r"\1\2Infinity", text.replace(": nan", ": NaN")))
