"""The operators of this project: their tables, read from the sources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1] / "kernels"

_ROW = re.compile(r'\bET_OP\(\s*"([^"]+)"\s*,\s*(\w+)\s*[,)]')
_NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)


@dataclass(frozen=True)
class Builtin:
    """One row of a family's table."""

    operator: str  # aten::add.out
    function: str  # torch::executor::native::add_out
    header: str  # that declares it, as it is included


@cache
def builtin_operators() -> dict[str, Builtin]:
    """All rows by operator; a file outside kernels/ has none."""
    rows: dict[str, Builtin] = {}
    for source in sorted(KERNELS.glob("*/*.cpp")):
        header = source.with_name("functions.h")
        if source.stem.endswith("_test") or not header.exists():
            continue
        text = source.read_text(encoding="utf-8")
        namespace = _NAMESPACE.search(text)
        included = f"executorch/kernels/{source.parent.name}/functions.h"
        for operator, function in _ROW.findall(text):
            qualified = f"{namespace[1]}::{function}" if namespace else function
            rows.setdefault(operator, Builtin(operator, qualified, included))
    return rows


@cache
def prim_operators() -> frozenset[str]:
    """The operators that every runtime has; a selection need not name them."""
    sources = [p for p in (KERNELS / "prim_ops").glob("*.cpp") if not p.stem.endswith("_test")]
    texts = [p.read_text(encoding="utf-8") for p in sources]
    return frozenset(name for text in texts for name in re.findall(r'"(\w+::[\w.]+)"', text))


def is_builtin_yaml(path: Path) -> bool:
    """Whether `path` is upstream's yaml of a set of kernels, e.g. kernels/portable/functions.yaml.
    Here the sources are that list, so that the file itself need not exist."""
    return path.parent.parent.name == "kernels" and (KERNELS / path.parent.name).is_dir()
