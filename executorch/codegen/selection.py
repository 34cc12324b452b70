"""Which operators a build has; the yaml that upstream calls selected_operators.yaml."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DEFAULT = "default"  # kernel key of the kernel for any types and dim orders

_SCHEMA = Path(__file__).resolve().parents[1] / "schema" / "program.fbs"


class CodegenError(Exception):
    """The message is for the user: what was found, what was expected."""


@dataclass
class Selection:
    """Operators by name (ns::name.overload), with the kernel keys asked for and where from."""

    kernels: dict[str, set[str]] = field(default_factory=dict)
    sources: dict[str, set[str]] = field(default_factory=dict)
    include_all: bool = False

    def add(self, operator: str, keys: set[str] | None = None, source: str = "None") -> None:
        self.kernels.setdefault(operator, set()).update(keys or {DEFAULT})
        self.sources.setdefault(operator, set()).add(source)

    def merge(self, other: Selection) -> None:
        for operator, keys in other.kernels.items():
            for source in other.sources[operator]:
                self.add(operator, keys, source)
        self.include_all = self.include_all or other.include_all

    def selects(self, operator: str) -> bool:
        return self.include_all or operator in self.kernels

    def to_dict(self) -> dict[str, Any]:
        return {
            "build_features": [],
            "custom_classes": [],
            "et_kernel_metadata": {op: sorted(keys) for op, keys in sorted(self.kernels.items())},
            "include_all_non_op_selectives": False,
            "include_all_operators": self.include_all,
            "kernel_metadata": {},
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
        elif isinstance(content, dict):
            selection.include_all = bool(content.get("include_all_operators"))
            metadata = content.get("et_kernel_metadata") or {}
            for operator, entry in (content.get("operators") or {}).items():
                for source in (entry or {}).get("debug_info") or [str(path)]:
                    selection.add(operator, set(metadata.get(operator, ())), source)
        else:
            raise CodegenError(f"{path}: neither a selection of operators nor a list of kernels")
        return selection


def load_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise CodegenError(f"{path}: {e.strerror}") from e
    except yaml.YAMLError as e:
        raise CodegenError(f"{path}: {e}") from e


def operator_of(entry: Any, path: Path) -> str:
    """The qualified operator of an entry of a kernel yaml (`op:` or `func:`)."""
    text = entry.get("op") or entry.get("func") if isinstance(entry, dict) else None
    if not isinstance(text, str):
        raise CodegenError(f"{path}: an entry needs `op` or `func`, found {entry!r}")
    name = text.split("(")[0].strip()
    return name if "::" in name else f"aten::{name}"


def of_model(path: Path) -> Selection:
    """What the instructions of a program call, with the types and dim orders of the tensors (the
    first one of a list). Needs flatc."""
    selection = Selection()
    for plan in _read_program(path)["execution_plan"]:
        names = [_qualified(op) for op in plan["operators"]]
        for chain in plan["chains"]:
            for instruction in chain["instructions"]:
                if instruction["instr_args_type"] == "KernelCall":
                    call = instruction["instr_args"]
                    key = _kernel_key(call["args"], plan["values"])
                    selection.add(names[call["op_index"]], {key}, str(path))
    return selection


def _qualified(operator: dict[str, str]) -> str:
    overload = operator.get("overload", "")
    return operator["name"] + (f".{overload}" if overload else "")


def _kernel_key(args: list[int], values: list[dict[str, Any]]) -> str:
    parts = []
    for index in args:
        value = values[index]
        if value.get("val_type") in ("TensorList", "OptionalTensorList"):
            items = [i for i in value["val"]["items"] if i >= 0]
            value = values[items[0]] if items else {}
        if value.get("val_type") == "Tensor":
            tensor = value["val"]
            order = ",".join(str(d) for d in tensor.get("dim_order", []))
            parts.append(f"{scalar_types()[tensor['scalar_type']]};{order}")
    return "v1/" + "|".join(parts) if parts else DEFAULT


@cache
def scalar_types() -> dict[str, int]:
    """Numbers of element types by their name in programs, FLOAT and so on."""
    text = _SCHEMA.with_name("scalar_type.fbs").read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(r"^\s*(\w+) = (\d+)", text, re.M)}


def _read_program(path: Path) -> dict[str, Any]:
    flatc = shutil.which("flatc")
    if flatc is None:
        raise CodegenError(f"{path}: reading a program needs flatc (flatbuffers-compiler)")
    if not path.exists():
        raise CodegenError(f"{path}: no such program")
    with tempfile.TemporaryDirectory() as folder:
        command = [flatc, "--json", "--strict-json", "--raw-binary", "--defaults-json"]
        command += ["-o", folder, str(_SCHEMA), "--", str(path.resolve())]
        done = subprocess.run(command, capture_output=True, text=True)
        written = next(Path(folder).glob("*.json"), None)
        if done.returncode != 0 or written is None:
            raise CodegenError(f"{path}: not a program: {done.stdout}{done.stderr}".strip())
        return json.loads(written.read_text(encoding="utf-8", errors="replace"))
