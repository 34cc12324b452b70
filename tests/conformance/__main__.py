"""Compare every operator of the runtime with eager PyTorch, from export to execution.

For each registered operator and dtype: OpInfo's samples and our own become programs, which the C++
runtime runs; integers, bools and copies must be equal, floats within a tolerance computed from
their type and the length of sums. Exit status 1 if a sample fails or an operator has none.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.conformance.checks import check_all, operators
from tests.conformance.report import Row, show, unsampled, write

SAMPLES_PER_DTYPE = 24


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: ./dev conformance --ops 'aten::(add|mul)' --json output/conformance.json",
    )
    parser.add_argument(
        "--ops", default="", metavar="REGEX", help="check only operators that match"
    )
    parser.add_argument("--dtypes", nargs="*", help="check only these, e.g. float32 int64")
    parser.add_argument(
        "--samples", type=int, default=SAMPLES_PER_DTYPE, help="the most samples of each dtype"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of processes")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the rows to this file, too"
    )
    args = parser.parse_args(argv)
    names = operators(args.ops)
    console = Console(width=None if sys.stdout.isatty() else 110)
    rows: list[Row] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("conformance", total=len(names))
        for some in check_all([(n, args.samples, args.dtypes) for n in names], args.jobs):
            rows += some
            progress.advance(task)
    rows.sort(key=lambda row: (row.operator, row.dtype))
    show(rows, console)
    if args.json:
        write(rows, args.json)
    return int(any(row.failed for row in rows) or bool(unsampled(rows)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
