"""Print how fast one process runs a program, and workers of a Ray cluster on this machine.

python tests/ray/throughput.py [--workers N] [--rows N]

A worker's time is from the start of its first batch to the end of its last. The last column leaves
out the time in which it had no core, or no rows yet.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "ray"))
import batch  # noqa: E402

WIDTH, HIDDEN, LIMIT = 512, 4096, 32
SECONDS = 480  # for what takes 40 on two idle cores


class TimedPredict(batch.Predict):
    """Adds to each row its batch's process, start and end, and seconds of a core."""

    def __call__(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        start, used = time.time(), time.process_time()
        n = len(super().__call__(rows)["output_0"])
        facts = (os.getpid(), start, time.time(), (time.process_time() - used) / n)
        names = ("pid", "start", "end", "core_seconds")
        return {name: np.full(n, fact) for name, fact in zip(names, facts, strict=True)}


def write_program(path: Path) -> None:
    import torch

    from executorch.export import export

    first, second = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, WIDTH)
    net = torch.nn.Sequential(first, torch.nn.ReLU(), second).eval()
    sizes = ({0: torch.export.Dim("rows", max=LIMIT)},)
    export(net, [(torch.ones(2, WIDTH),)], dynamic_shapes=sizes).save_to_pte(str(path))


def in_one_process(program: str, x: np.ndarray) -> dict[str, np.ndarray]:
    predict = TimedPredict(program, "x")
    predict({"x": x[:LIMIT]})
    done = [predict({"x": x[i : i + LIMIT]}) for i in range(0, len(x), LIMIT)]
    return {name: np.concatenate([each[name] for each in done]) for name in done[0]}


def on_ray(program: str, x: np.ndarray, workers: int) -> dict[str, np.ndarray]:
    import ray

    ray.cloudpickle.register_pickle_by_value(batch)  # workers do not find it
    ray.init(
        num_cpus=workers + 1, include_dashboard=False, log_to_driver=False, logging_level="error"
    )
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        done = ray.data.from_numpy(np.split(x, len(x) // (8 * LIMIT))).map_batches(
            TimedPredict,
            fn_constructor_args=(program, "data"),
            batch_size=LIMIT,
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
        )
        return done.to_pandas().to_dict("series")
    finally:
        ray.shutdown()


def row(name: str, facts: dict[str, np.ndarray]) -> str:
    pid, start, end = (np.asarray(facts[key]) for key in ("pid", "start", "end"))
    rates = []
    for each in np.unique(pid):
        mine = pid == each
        rates.append(mine.sum() / (end[mine].max() - start[mine].min()))
    per_core_second = len(pid) / np.sum(facts["core_seconds"])
    total, mean = sum(rates), np.mean(rates)
    return f"{name:<16}{total:>12,.0f}{mean:>18,.0f}{per_core_second:>22,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--rows", type=int, default=32768, help="a multiple of 256")
    args = parser.parse_args()
    x = np.random.default_rng(0).standard_normal((args.rows, WIDTH), dtype=np.float32)
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # the cluster ends with this process
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        os.environ |= {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        program = Path(folder) / "net.pte"
        write_program(program)
        print(f"{'':16}{'rows/s':>12}{'rows/s a worker':>18}{'rows/s of a core':>22}", flush=True)
        print(row("one process", in_one_process(str(program), x)), flush=True)
        print(row(f"Ray, {args.workers} workers", on_ray(str(program), x, args.workers)))


if __name__ == "__main__":
    main()
