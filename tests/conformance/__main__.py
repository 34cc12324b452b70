"""Every operator of the runtime against eager PyTorch, through the whole way.

For each registered operator and dtype: OpInfo's samples and our own become programs, which the C++
runtime runs; integers, bools and copies must be equal, floats within a tolerance computed from
their type and the length of sums. Exit status 1 if a sample fails or an operator has none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from executorch.runtime import Runtime
from tests.conformance.report import Row, show, unsampled, write

SAMPLES_PER_DTYPE = 24

# Operators on numbers and memory, which no module calls by itself, are tested beside their subject;
# those that write into arguments, and one whose fake result has not eager's dtype, in tests/ops.
NOT_SAMPLED = re.compile(
    r"executorch_prim::|et_copy::|aten::(sym_|_local_scalar_dense|copy_$|index_put_$"
    r"|_native_batch_norm_legit\.out)|quantized_decomposed::choose_qparams_per_token\.out"
)


def operators(pattern: str = "") -> list[str]:
    names = Runtime.get().operator_registry.operator_names
    return sorted(n for n in names if not NOT_SAMPLED.match(n) and re.search(pattern, n))


def check(name: str, most: int, dtypes: list[str] | None = None) -> list[Row]:
    """The rows of one operator."""
    from tests.conformance import runs, samples

    rows = []
    for dtype in samples.DTYPES:
        short = str(dtype).removeprefix("torch.")
        if dtypes and short not in dtypes:
            continue
        with runs.quiet():
            mine = samples.samples_of(name, dtype, most)
        rows.append(Row.of(name, short, runs.run(name, mine)))
    return rows


def _check(job: tuple[str, int, list[str] | None]) -> list[Row]:
    try:
        return check(*job)
    except Exception as error:
        row = Row(job[0], "-")
        row.counts["failed"] += 1
        row.reasons[f"{type(error).__name__}: {error}"] += 1
        return [row]


def _start() -> None:
    import torch

    torch.set_num_threads(1)


def check_all(jobs: list[tuple[str, int, list[str] | None]], n: int) -> Iterator[list[Row]]:
    if n <= 1:
        yield from map(_check, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(n, initializer=_start, maxtasksperchild=40) as pool:
        yield from pool.imap_unordered(_check, jobs)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: ./dev conformance --ops 'aten::(add|mul)' --json output/conformance.json",
    )
    parser.add_argument("--ops", default="", metavar="REGEX", help="only operators that match")
    parser.add_argument("--dtypes", nargs="*", help="only these, e.g. float32 int64")
    parser.add_argument("--samples", type=int, default=SAMPLES_PER_DTYPE, help="per dtype, at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
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
