"""Run the tutorials' snippets and print the table of rows: python -m tests.seeds [GROUP...]"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console
from rich.table import Table

from tests.seeds.cut import TEXTS, available
from tests.seeds.results import Result
from tests.seeds.table import GROUPS, not_run


def main(names: list[str]) -> int:
    if not available():
        print(f"seeds: the tutorial texts are not in {TEXTS}", file=sys.stderr)
        return 0
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"seeds: no group {unknown[0]!r}; there are {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    results: list[Result] = [] if names else not_run()
    chosen = names or list(GROUPS)
    exports = [name for name in chosen if not name.startswith("cpp")]
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda name: GROUPS[name](), exports):
            results += found
    for name in chosen:
        if name not in exports:  # one after the other: each uses every core, and the first fills
            results += GROUPS[name]()  # the compiler cache for the next
    _print(results)
    return int(any(r.status == "FAIL" for r in results))


def _print(results: list[Result]) -> None:
    table = Table("row", "seed", "result", "note", title="Snippets of the tutorials")
    colours = {"PASS": "[green]", "FAIL": "[red]"}
    for r in sorted(results, key=lambda r: (r.row, r.seed)):
        table.add_row(str(r.row), r.seed, colours.get(r.status, "") + r.status, r.note)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    passed = sum(r.status == "PASS" for r in results)
    failed = sum(r.status == "FAIL" for r in results)
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
