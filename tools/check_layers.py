"""Check every include and import under executorch/ against layers.toml.

python tools/check_layers.py    # prints the arrows that point where they may not, exit 1
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "executorch"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]executorch/([^>"]+)[>"]', re.M)


def room_of(path: str, rooms: Iterable[str]) -> str | None:
    """The most specific room that contains `path` (relative to executorch/)."""
    inside = [r for r in rooms if path == r or path.startswith((r + "/", r + "."))]
    return max(inside, key=len, default=None)


def arrows(source: Path) -> Iterator[str]:
    """What `source` includes or imports, wherever in it, as paths relative to executorch/."""
    text = source.read_text(encoding="utf-8")
    if source.suffix != ".py":
        yield from INCLUDE.findall(text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        ours = (name.split(".")[1:] for name in names if name.startswith("executorch."))
        yield from map("/".join, ours)


def rooms_seen(path: str, table: dict[str, Any]) -> Iterator[str]:
    """What the file at `path` includes or imports although its room may not."""
    rooms = table["rooms"]
    room = room_of(path, rooms)
    if room is None:
        return
    allowed = {room, *rooms[room], *exceptions_of(path, table)}
    for target in arrows(SOURCES / path):
        seen = room_of(target, rooms)
        if seen is not None and seen not in allowed:
            may = ", ".join(sorted(allowed - {room})) or "nothing"
            yield f"{room} sees {seen} ({target}); it may see {may}"


def floors_seen(path: str, table: dict[str, Any]) -> Iterator[str]:
    """What the file at `path` includes or imports from its own floor or a higher one, within the
    room it is in."""
    for outer, floors in table["floors"].items():
        level = {f"{outer}/{room}": i for i, floor in enumerate(floors) for room in floor}
        room = room_of(path, level)
        if room is None:
            continue
        for target in arrows(SOURCES / path):
            seen = room_of(target, level)
            if seen is None and is_reexported(target, outer):
                yield f"{room} sees {outer} ({target}); expected the module that defines it"
            if seen in (None, room) or seen in exceptions_of(path, table):
                continue
            if level[seen] >= level[room]:
                yield (
                    f"{room}, floor {level[room]} of {outer}, sees {seen}, floor {level[seen]} "
                    f"({target}); it may see what is below it"
                )


def is_reexported(target: str, outer: str) -> bool:
    """Whether `target` is a name that the package `outer` re-exports, which may come from any of
    its modules."""
    parent, _, name = target.rpartition("/")
    sources = (SOURCES / outer).glob(f"{name}*")
    is_module = name.startswith("_") or any(s.name.split(".")[0] == name for s in sources)
    return parent == outer and not is_module


def exceptions_of(path: str, table: dict[str, Any]) -> set[str]:
    return {r for key, rs in table["exceptions"].items() if path.startswith(key) for r in rs}


def violations() -> Iterator[str]:
    table = tomllib.loads((ROOT / "layers.toml").read_text())
    for source in sorted(SOURCES.rglob("*")):
        if source.suffix not in (".h", ".cpp", ".py") or source.stem.endswith("_test"):
            continue
        path = source.relative_to(SOURCES).as_posix()
        for found in (*rooms_seen(path, table), *floors_seen(path, table)):
            yield f"executorch/{path}: {found}"


def main() -> int:
    found = list(violations())
    print("\n".join(found) or "layers: every include and import is allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
