"""Run a program over a data set, with one process for each core of one machine or of many.

    python batch.py model.pte rows/ results/ --workers 2

Each process maps the program, so that the weights are in a machine's memory once, and runs on one
thread. A process that dies is started again, and what it had not finished is done again; each row
is in the results once.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import ray

from executorch.extension.pybindings import portable_lib
from executorch.runtime import Module

DTYPES = {0: np.uint8, 3: np.int32, 4: np.int64, 6: np.float32, 7: np.float64, 11: np.bool_}


class Predict:
    """One process's program. Batches are dictionaries of columns, as Ray Data hands them out."""

    def __init__(self, model: str, column: str) -> None:
        portable_lib._unsafe_reset_threadpool(1)  # the other cores have processes of their own
        self.column = column
        self.module = Module(model)
        self.dtype = DTYPES[self.module.metadata().input_tensor_meta(0).dtype()]

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The batch's columns, and the program's outputs as output_0, output_1, ..."""
        rows = np.stack(batch[self.column]).astype(self.dtype, copy=False)
        outputs = self.module(rows)
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        return batch | {f"output_{i}": np.asarray(y) for i, y in enumerate(outputs)}


def largest_batch(model: str) -> int:
    """The first size that the program's input was exported for."""
    with Module(model) as module:
        return module.metadata().input_tensor_meta(0).sizes()[0]


def run(model: str, rows: str, results: str, column: str, workers: int, batch_size: int) -> int:
    """Read, run and write; returns the number of rows that were read."""
    data = ray.data.read_parquet(rows)
    # Pieces that cost little to move, and of which there are enough for all workers.
    data.repartition(target_num_rows_per_block=16 * batch_size).map_batches(
        Predict,
        fn_constructor_args=(model, column),
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    ).write_parquet(results)
    return data.count()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a .pte, under the same path on every machine")
    parser.add_argument("rows", help="a Parquet file, or a folder of them")
    parser.add_argument("results", help="a folder that is not there yet")
    parser.add_argument("--column", default="x", help="what the program takes: a list in each row")
    parser.add_argument("--workers", type=int, default=2, help="processes, one core each")
    parser.add_argument("--batch-size", type=int, help="rows in one run; at most the program's")
    parser.add_argument("--address", help="a running cluster's; without it one is started here")
    args = parser.parse_args()
    if Path(args.results).exists():
        parser.error(f"{args.results} is there already; rows would be in it twice")
    model = str(Path(args.model).resolve(strict=True))
    limit = largest_batch(model)
    batch_size = args.batch_size or limit
    if not 1 <= batch_size <= limit:
        parser.error(f"--batch-size {batch_size}: the program takes 1 to {limit} rows")

    if args.address:
        ray.init(address=args.address)
    else:  # one more than the workers have, for the tasks that read and write
        ray.init(num_cpus=args.workers + 1, include_dashboard=False)
    try:
        n = run(model, args.rows, args.results, args.column, args.workers, batch_size)
    finally:
        ray.shutdown()
    print(f"{args.results}: {n} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
