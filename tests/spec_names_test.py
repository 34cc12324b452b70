"""Every name of the delegation, XNNPACK and quantization parts of the list of upstream's Python API
imports, with the members and parameters listed. Needs the list, which is kept apart from this
repository; skipped without it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).resolve().parents[2] / "shared" / "spec" / "api-python.md"
pytestmark = pytest.mark.skipif(not LIST.exists(), reason="the list is not here")

PARTS = (
    "executorch.exir.lowered_backend_module",
    "executorch.exir.backend",
    "executorch.devtools.backend_debug",
    "executorch.backends",
    "executorch.export",
)
# torch's own classes, of whatever signature they have there.
FOREIGN = {"QuantizationSpec"}


def entries() -> Iterator[tuple[str, str, str]]:
    """(module, name or Class.member, parameters as text or "")."""
    module = owner = ""
    for line in LIST.read_text().splitlines() if LIST.exists() else []:
        if heading := re.match(r"#+ `(executorch[\w.]*)`", line):
            module, owner = heading[1], ""
        elif line.startswith("#"):
            module = owner = ""
        if not module.startswith(PARTS):
            continue
        if found := re.match(r"- (?:class|dataclass|enum) `(\w+)`(.*)", line):
            owner = found[1]
            init = re.search(r"`__init__\((.*)\)", found[2])
            yield module, owner, init[1] if init else ""
            if re.match(r"- (dataclass|enum)", line):
                for field in re.findall(r"`(\w+)(?::|`=)", found[2]):
                    yield module, f"{owner}.{field}", ""
        elif found := re.match(r"- `(\w+)\((.*?)\)(?: ->.*)?`$", line):
            yield module, found[1], found[2]
        elif owner and (found := re.match(r"  - .*?`(\w+)\(?(.*?)\)?(?: ->.*)?`$", line)):
            yield module, f"{owner}.{found[1]}", found[2] if "(" in line else ""


def parameters(text: str) -> list[str]:
    """Names of a list of parameters, whose types hold commas and brackets too."""
    names, depth, word = [], 0, ""
    for c in text + ",":
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            name = word.split(":")[0].split("=")[0].strip()
            if name and name not in ("self", "cls", "*", "/"):
                names.append(name)
            word = ""
        else:
            word += c
    return names


def member(found: Any, name: str) -> Any:
    fields = getattr(found, "__dataclass_fields__", {})
    if name in fields or name in getattr(found, "_fields", ()):
        return None
    return getattr(found, name)


@pytest.mark.parametrize(("module", "name", "given"), list(entries()))
def test_names_are_there_with_their_parameters(module: str, name: str, given: str) -> None:
    owner, _, inner = name.partition(".")
    found = getattr(importlib.import_module(module), owner)
    if inner:
        found = member(found, inner)
    if found is None or not callable(found) or not given or owner in FOREIGN:
        return
    signature = inspect.signature(found).parameters
    takes_any = any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in signature.values())
    missing = [
        p for p in parameters(given) if p.lstrip("*") not in signature and not p.startswith("*")
    ]
    assert not missing or takes_any, f"{name} takes {list(signature)}, not {missing}"
