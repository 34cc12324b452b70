"""Copies an example to change, with what it needs of the package.

python -m executorch.examples                says which there are
python -m executorch.examples NAME FOLDER    copies one into FOLDER, which is made
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

EXAMPLES = {
    "browser": "a page that runs programs (docs/browser.md)",
    "ray": "programs over data sets and behind HTTP, on many machines (docs/ray.md)",
}
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent


def sources(name: str) -> list[Path]:
    """The example's files, in an installation or a checkout. Raises FileNotFoundError."""
    own = _first(PACKAGE / "examples" / name, CHECKOUT / "examples" / name)
    files = [file for file in own.iterdir() if file.is_file()]
    if name == "browser":
        wasm = PACKAGE / "extension" / "wasm"
        built = CHECKOUT / "build" / "wasm" / "executorch" / "extension" / "wasm"
        files += [_first(wasm / "executorch.wasm", built / "executorch.wasm")]
        files += wasm.glob("*.mjs")
    return files


def _first(*places: Path) -> Path:
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(
        f"{places[0]} is missing: the published wheel has it; in a checkout ./dev browser makes it"
    )


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
        for name, what in EXAMPLES.items():
            print(f"\n{name:10}{what}", end="")
        print()
        return 0
    if len(arguments) != 2 or arguments[0] not in EXAMPLES:
        print(f"expected NAME FOLDER, NAME of: {', '.join(EXAMPLES)}", file=sys.stderr)
        return 2
    name, folder = arguments[0], Path(arguments[1])
    try:
        files = sources(name)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    there = [file.name for file in files if (folder / file.name).exists()]
    if there:
        print(f"{folder} has {', '.join(there)} already, maybe changed", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    print(f"{folder}: {', '.join(sorted(file.name for file in files))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
