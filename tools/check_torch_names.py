"""Check that what torch keeps to itself is named in one module only, exir/torch_internals.py.

python tools/check_torch_names.py    # prints the names that stand elsewhere, exit 1

Three things are private: a module or name of torch or torchao with a component that begins with an
underscore; an attribute of that kind which torch_internals.py reads; and one that no source of the
package defines. Operators (`torch.ops.aten._softmax`) are data. Tests may look anywhere.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "executorch"
HOME = SOURCES / "exir" / "torch_internals.py"
MODULE = re.compile(r"torch(ao)?(\.\w+)+")
LIBRARIES = ("torch", "torchao")
OPERATORS = {"ops", "edge", "aten", "_aten"}  # below these, names are operators'

# Names that may stand anywhere, and why.
ALLOWED = {
    "torch._check": "torch's documentation tells authors of models to call it",
    "super()._apply": "nn.Module's hook for what moves a model; models may override it",
}
# Sources with private names that are not torch's.
NOT_OF_TORCH = {
    "runtime": "reads the bindings, which C++ defines",
    "extension/pybindings": "the bindings",
    "devtools/parity/replay.py": "steps through the bindings",
    "export/experts.py": "asks experts modules of transformers for their activation",
}


def is_private(name: str) -> bool:
    """Whether a dotted name has a component with one leading underscore."""
    return any(p.startswith("_") and not p.startswith("__") for p in name.split("."))


def is_torchs(name: str) -> bool:
    return name.split(".")[0] in LIBRARIES


def attributes(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, dotted text, name) of private attributes, also of those that getattr names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.lineno, ast.unparse(node), node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield node.lineno, f"{ast.unparse(node.args[0])}.{name.value}", str(name.value)


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of everything that is imported from torch, and of texts that name modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if is_torchs(a.name))
        elif isinstance(node, ast.ImportFrom) and node.module and is_torchs(node.module):
            yield from ((node.lineno, f"{node.module}.{a.name}") for a in node.names)
        elif isinstance(node, ast.Constant) and MODULE.fullmatch(str(node.value)):
            yield node.lineno, str(node.value)  # for importlib


def defined(tree: ast.AST) -> Iterator[str]:
    """The private names that a source gives to its own functions, classes and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node, ast.Attribute) else node.id


def violations() -> Iterator[str]:
    sources = [p for p in sorted(SOURCES.rglob("*.py")) if not p.stem.endswith("_test")]
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sources}
    home = trees.pop(HOME)
    known = {name for _, _, name in attributes(home)}
    known |= {
        n.value
        for n in ast.walk(home)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("_")
    }
    ours = {name for tree in trees.values() for name in defined(tree)}
    for path, tree in trees.items():
        relative = path.relative_to(SOURCES).as_posix()
        for line, name in imports(tree):
            if is_private(name):
                yield f"executorch/{relative}:{line}: imports {name}"
        if relative.startswith(tuple(NOT_OF_TORCH)):
            continue
        for line, text, name in attributes(tree):
            owner = text.rpartition(".")[0]
            if text in ALLOWED or owner in ("self", "cls") or OPERATORS & set(owner.split(".")):
                continue
            if is_torchs(text) or name in known or name not in ours:
                yield f"executorch/{relative}:{line}: names {text}"


def main() -> int:
    found = list(violations())
    rule = "expected executorch/exir/torch_internals.py to name it, and this source to import it"
    print("\n".join(f"{each}; {rule}" for each in found) or "torch names: all in one module")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
