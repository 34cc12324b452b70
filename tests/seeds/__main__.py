"""Run the tutorials' snippets and print the table of rows: python -m tests.seeds [GROUP...]"""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from rich.console import Console
from rich.table import Table

from tests.seeds.cut import TEXTS, available
from tests.seeds.results import Result
from tests.seeds.scratch import SHIMS
from tests.seeds.table import GROUPS, not_run, run_group


def main(names: list[str]) -> int:
    if not available():
        print(f"seeds: the tutorial texts are not in {TEXTS}", file=sys.stderr)
        return 2
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"seeds: no group {unknown[0]!r}; there are {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    results: list[Result] = [] if names else not_run()
    chosen = names or list(GROUPS)
    exports = [name for name in chosen if not name.startswith("cpp")]
    others = [name for name in chosen if name not in exports]
    progress = _Progress(len(chosen))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        running = {pool.submit(run_group, name): name for name in exports}
        for done in as_completed(running):
            results += progress.ended(running[done], done.result())
    for name in others:  # one after the other: each uses every core, and the first fills the
        results += progress.ended(name, run_group(name))  # compiler cache for the next
    _print(results)
    return int(any(r.status == "FAIL" for r in results))


class _Progress:
    """One line for each group that ended."""

    def __init__(self, total: int) -> None:
        self.total, self.n, self.start = total, 0, time.monotonic()

    def ended(self, name: str, results: list[Result]) -> list[Result]:
        self.n += 1
        failed = sum(r.status == "FAIL" for r in results)
        verdict = f"{failed} of {len(results)} rows failed" if failed else f"{len(results)} rows"
        seconds = time.monotonic() - self.start
        print(f"[{self.n}/{self.total}] {name}: {verdict}, {seconds:.0f} s", file=sys.stderr)
        return results


def _print(results: list[Result]) -> None:
    table = Table("row", "seed", "result", "note", title="Snippets of the tutorials")
    colours = {"PASS": "[green]", "FAIL": "[red]"}
    for r in sorted(results, key=lambda r: (r.row, r.seed)):
        table.add_row(str(r.row), r.seed, colours.get(r.status, "") + r.status, r.note)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    print(f"In every row: {SHIMS}.")
    passed = sum(r.status == "PASS" for r in results)
    failed = sum(r.status == "FAIL" for r in results)
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
