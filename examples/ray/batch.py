"""Run a program over a data set, with one process for each core of one machine or of many.

    python batch.py model.pte rows/ results/ --workers 2

Each process maps the program, so that the weights are in a machine's memory once, and runs on one
thread. A process that dies is started again, and what it had not finished is done again; each row
is in the results once.

Ray hands out blocks of many runs. What it does for one, beside the runs, takes milliseconds of a
core, as long as a small program's run. Rows stay in Arrow's columns, which are arrays already.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import ray

from executorch.extension.pybindings import portable_lib
from executorch.runtime import Module

DTYPES = {0: np.uint8, 3: np.int32, 4: np.int64, 6: np.float32, 7: np.float64, 11: np.bool_}
RUNS_IN_A_BLOCK = 256  # at most, and
BYTES_IN_A_BLOCK = 64 << 20  # of the program's input at most; a block is in a worker's memory


class Predict:
    """One process's program."""

    def __init__(self, model: str, column: str, batch_size: int) -> None:
        portable_lib._unsafe_reset_threadpool(1)  # the other cores have processes of their own
        self.column, self.batch_size = column, batch_size
        self.module = Module(model)
        self.dtype = DTYPES[self.module.metadata().input_tensor_meta(0).dtype()]

    def __call__(self, block: pa.Table) -> pa.Table:
        """The block's columns, and the program's outputs as output_0, output_1, ..."""
        rows = array_of(block.column(self.column)).astype(self.dtype, copy=False)
        runs = [
            self.run(rows[i : i + self.batch_size]) for i in range(0, len(rows), self.batch_size)
        ]
        for i, parts in enumerate(zip(*runs, strict=True)):
            block = block.append_column(f"output_{i}", column_of(np.concatenate(parts)))
        return block

    def run(self, rows: np.ndarray) -> list[np.ndarray]:
        outputs = self.module(rows)
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        arrays = [np.asarray(y) for y in outputs]
        for y in arrays:
            if y.shape[:1] != rows.shape[:1]:
                raise ValueError(f"an output of {len(rows)} rows is {list(y.shape)}: not one a row")
        return arrays


def array_of(column: pa.ChunkedArray) -> np.ndarray:
    """[n, ...] of n rows: numbers, lists, lists of lists, or tensors of Ray. Copies nothing but
    what is in several pieces. Raises ValueError where rows differ in size or have no value."""
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(values.type, pa.BaseExtensionType):
        return np.stack(values.to_numpy(zero_copy_only=False))
    shape = [len(values)]
    while hasattr(values.type, "value_type"):
        sizes = pc.unique(pc.list_value_length(values)).to_pylist()
        if len(sizes) != 1 or None in sizes:
            raise ValueError(f"rows should have one size, and have {sizes[:4]}")
        shape += sizes
        values = values.flatten()
    if values.null_count:
        raise ValueError(f"{values.null_count} values are null")
    return values.to_numpy(zero_copy_only=False).reshape(shape)


def column_of(rows: np.ndarray) -> pa.Array:
    """The reverse: lists in each row, as deep as it has dimensions."""
    column = pa.array(rows.reshape(-1))
    for size in rows.shape[:0:-1]:
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def largest_batch(model: str) -> int:
    """The first size that the program's input was exported for."""
    with Module(model) as module:
        return module.metadata().input_tensor_meta(0).sizes()[0]


def rows_in_a_block(model: str, batch_size: int, n_rows: int, workers: int) -> int:
    """Full runs, as many as fit; fewer where each of the workers would not get some blocks."""
    with Module(model) as module:
        info = module.metadata().input_tensor_meta(0)
    row_bytes = max(1, info.nbytes() // info.sizes()[0])
    wanted = min(
        RUNS_IN_A_BLOCK * batch_size, BYTES_IN_A_BLOCK // row_bytes, n_rows // (4 * workers)
    )
    return max(1, wanted // batch_size) * batch_size


def predictions(
    data: ray.data.Dataset,
    model: str,
    column: str,
    workers: int,
    batch_size: int,
    n_in_a_block: int,
    predict: type[Predict] = Predict,
) -> ray.data.Dataset:
    """The data set with the program's outputs, computed when it is read."""
    return data.repartition(target_num_rows_per_block=n_in_a_block).map_batches(
        predict,
        fn_constructor_args=(model, column, batch_size),
        batch_size=None,  # the block as it is
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )


def run(model: str, rows: str, results: str, column: str, workers: int, batch_size: int) -> int:
    """Read, run and write; returns the number of rows that were read."""
    data = ray.data.read_parquet(rows)
    n = data.count()
    n_in_a_block = rows_in_a_block(model, batch_size, n, workers)
    predictions(data, model, column, workers, batch_size, n_in_a_block).write_parquet(results)
    return n


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
