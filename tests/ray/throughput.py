"""Print how fast a program runs in one process without Ray, in as many as there are workers, and in
workers of a Ray cluster, all on this machine, and on one thread each.

python tests/ray/throughput.py [--workers N] [--rows N] [--batch-size N] [--rounds N]

Two speeds of a process: the rows of a second, and the rows of a second of a core. Both are counted
from the start of its first block to the end of its last, so that what Ray does between them is in,
and the core's are those of all threads that the process has. Without Ray, rows lie in memory; with
it they are read and written by other processes, which take their share of the same cores: the rows
of a second show that, those of a core's second do not. The last column says how much of the core's
time the process was in the example's code: what is missing is Ray's, and no other load of the
machine changes that much. The three ways take turns; the last lines have the medians of all turns.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "ray"))
import batch  # noqa: E402

WIDTH, HIDDEN = 512, 4096
SECONDS = 480  # for what takes 120 on two idle cores
FACTS = ("pid", "start", "end", "core_start", "core_end")

# Of the mean process: rows a second, rows a second of a core, share of that in the example's code.
Speed = tuple[float, float, float]


class TimedPredict(batch.Predict):
    """Adds to each row its block's process, start and end, by the clock and in seconds of cores."""

    def __call__(self, block: pa.Table) -> pa.Table:
        start, core_start = time.time(), time.process_time()
        done = super().__call__(block)
        facts = (os.getpid(), start, time.time(), core_start, time.process_time())
        for name, fact in zip(FACTS, facts, strict=True):
            done = done.append_column(name, pa.array(np.full(len(block), float(fact))))
        return done


def write_program(path: Path, batch_size: int) -> None:
    import torch

    from executorch.export import export

    first, second = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, WIDTH)
    net = torch.nn.Sequential(first, torch.nn.ReLU(), second).eval()
    sizes = ({0: torch.export.Dim("rows", max=batch_size)},)
    export(net, [(torch.ones(2, WIDTH),)], dynamic_shapes=sizes).save_to_pte(str(path))


def write_rows(path: Path, n: int) -> None:
    x = np.random.default_rng(0).standard_normal((n, WIDTH), dtype=np.float32)
    pq.write_table(pa.table({"x": batch.column_of(x)}), path)


def _without_ray(program: str, rows: str, batch_size: int, n: int) -> pa.Table:
    predict, table = TimedPredict(program, "x", batch_size), pq.read_table(rows)
    predict(table.slice(0, batch_size))
    blocks = [predict(table.slice(i, n)) for i in range(0, len(table), n)]
    return pa.concat_tables([block.select(FACTS) for block in blocks])


def block_size(program: Path, rows: Path, batch_size: int, processes: int) -> int:
    n_rows = processes * pq.read_metadata(rows).num_rows
    return batch.rows_in_a_block(str(program), batch_size, n_rows, processes)


def side_by_side(program: Path, rows: Path, batch_size: int, processes: int) -> Speed:
    """Each runs all rows."""
    n = block_size(program, rows, batch_size, processes)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        arguments = [(str(program), str(rows), batch_size, n)] * processes
        return speed(pa.concat_tables(pool.starmap(_without_ray, arguments, chunksize=1)))


def on_ray(program: Path, rows: Path, batch_size: int, workers: int, results: Path) -> Speed:
    """The workers share as many copies of the rows as there are workers."""
    import ray

    n = block_size(program, rows, batch_size, workers)
    ray.cloudpickle.register_pickle_by_value(batch)  # workers do not find it
    ray.init(
        num_cpus=workers + 1, include_dashboard=False, log_to_driver=False, logging_level="error"
    )
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        data = ray.data.read_parquet([str(rows)] * workers)
        arguments = (str(program), "x", workers, batch_size, n, TimedPredict)
        batch.predictions(data, *arguments).write_parquet(str(results))
    finally:
        ray.shutdown()
    return speed(pq.read_table(results, columns=list(FACTS)))


def speed(facts: pa.Table) -> Speed:
    pid, start, end, core_start, core_end = (facts[name].to_numpy() for name in FACTS)
    found = []
    for each in np.unique(pid):
        mine = pid == each
        seconds = end[mine].max() - start[mine].min()
        of_cores = core_end[mine].max() - core_start[mine].min()
        inside = np.unique(core_end[mine]).sum() - np.unique(core_start[mine]).sum()
        found.append((mine.sum() / seconds, mine.sum() / of_cores, inside / of_cores))
    by_clock, by_core, share = np.mean(found, axis=0)
    return float(by_clock), float(by_core), float(share)


def turns(folder: Path, args: argparse.Namespace) -> Iterator[tuple[str, Speed]]:
    program, rows = folder / "net.pte", folder / "rows.parquet"
    write_program(program, args.batch_size)
    write_rows(rows, args.rows)
    given = (program, rows, args.batch_size)
    for i in range(args.rounds):
        yield "one process", side_by_side(*given, 1)
        yield f"{args.workers} side by side", side_by_side(*given, args.workers)
        yield f"Ray, {args.workers} workers", on_ray(*given, args.workers, folder / f"results-{i}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--rows", type=int, default=65536, help="for each process")
    parser.add_argument("--batch-size", type=int, default=32, help="rows in one run")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # the cluster ends with this process
    found: dict[str, list[Speed]] = {}
    print(
        f"{'of the mean process':20}{'rows/s':>10}{'of a core':>12}{'in the example':>17}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as name:
        os.environ |= {"RAY_TMPDIR": name, "RAY_USAGE_STATS_ENABLED": "0"}
        for way, measured in turns(Path(name), args):
            found.setdefault(way, []).append(measured)
            print(line(way, measured), flush=True)
    print(f"medians of {args.rounds} rounds; in brackets, parts of one process's")
    medians = {way: tuple(map(statistics.median, zip(*m, strict=True))) for way, m in found.items()}
    by_clock, by_core, _ = medians["one process"]
    for way, median in medians.items():
        print(line(way, median), f"  ({median[0] / by_clock:.2f}, {median[1] / by_core:.2f})")


def line(way: str, of: Speed) -> str:
    return f"{way:20}{of[0]:>10,.0f}{of[1]:>12,.0f}{of[2]:>17.3f}"


if __name__ == "__main__":
    main()
