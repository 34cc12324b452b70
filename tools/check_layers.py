"""Check every include and import under executorch/ against layers.toml.

python tools/check_layers.py    # prints the arrows that point where they may not, exit 1
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "executorch"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]executorch/([^>"]+)[>"]', re.M)
IMPORT = re.compile(r"^\s*(?:from|import)\s+executorch\.([\w.]+)", re.M)
FROM_ROOT = re.compile(r"^\s*from\s+executorch\s+import\s+(\w+)", re.M)


def room_of(path: str, rooms: dict[str, list[str]]) -> str | None:
    """The most specific room that contains `path` (relative to executorch/)."""
    inside = [r for r in rooms if path == r or path.startswith((r + "/", r + "."))]
    return max(inside, key=len, default=None)


def arrows(source: Path) -> Iterator[str]:
    """What `source` includes or imports, as paths relative to executorch/."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".py":
        for pattern in (IMPORT, FROM_ROOT):
            yield from (m.replace(".", "/") for m in pattern.findall(text))
    else:
        yield from INCLUDE.findall(text)


def violations() -> Iterator[str]:
    table = tomllib.loads((ROOT / "layers.toml").read_text())
    rooms, exceptions = table["rooms"], table["exceptions"]
    for source in sorted(SOURCES.rglob("*")):
        if source.suffix not in (".h", ".cpp", ".py") or source.stem.endswith("_test"):
            continue
        path = source.relative_to(SOURCES).as_posix()
        room = room_of(path, rooms)
        if room is None:
            continue
        extra = [r for key, rs in exceptions.items() if path.startswith(key) for r in rs]
        allowed = {room, *rooms[room], *extra}
        for target in arrows(source):
            seen = room_of(target, rooms)
            if seen is not None and seen not in allowed:
                may = ", ".join(sorted(allowed - {room})) or "nothing"
                yield f"executorch/{path}: {room} sees {seen} ({target}); it may see {may}"


def main() -> int:
    found = list(violations())
    print("\n".join(found) or "layers: every arrow points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
