"""examples/ray/batch.py on a local cluster of several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="ray is not installed; ./dev ray")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from ray.data.extensions import ArrowTensorArray  # noqa: E402

from examples.ray import batch  # noqa: E402
from tests.ray.cluster import EXAMPLES, ROOT, example, memory_of  # noqa: E402
from tests.ray.conftest import LIMIT, Task  # noqa: E402


def n_written(results: Path) -> int:
    """Rows of the files that are complete."""
    found = 0
    for path in results.glob("*.parquet"):
        try:
            found += pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowInvalid):  # being written
            continue
    return found


def test_a_worker_dies_and_each_row_is_there_once(task: Task, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with example("batch.py", task.program, task.rows, results) as run:
        run.until("two workers", lambda: len(run.workers(task.program)) == 2)
        run.until("the first results", lambda: n_written(results))
        killed, other = run.workers(task.program)
        os.kill(killed, signal.SIGKILL)
        before = n_written(results)
        run.until("another worker", lambda: set(run.workers(task.program)) - {killed, other})
        assert f"{results}: {len(task.x)} rows" in run.finish()
        left = run.left()
    assert 0 < before < len(task.x) - LIMIT  # it was mid-way
    assert left == []
    table = pq.read_table(results)
    ids = table["id"].to_numpy()
    assert sorted(ids) == list(range(len(task.x)))
    assert table.column_names == ["id", "x", "output_0"]
    found = np.stack(table["output_0"].to_numpy())
    np.testing.assert_allclose(found, task.y[ids], rtol=0, atol=task.tolerance)


def test_workers_share_the_pages_of_the_weights(task: Task, tmp_path: Path) -> None:
    size = task.program.stat().st_size
    with example("batch.py", task.program, task.rows, tmp_path / "results") as run:
        run.until(
            "two workers that have read all weights",
            lambda: (
                [
                    memory_of(p, task.program).get("Rss", 0) > 0.95 * size
                    for p in run.workers(task.program)
                ]
                == [True, True]
            ),
        )
        workers = run.workers(task.program)
        mapped = [memory_of(pid, task.program) for pid in workers]
        whole = [memory_of(pid) for pid in workers]
    assert all(each["Rss"] > 0.95 * size and each["Private_Dirty"] == 0 for each in mapped)
    assert sum(each["Pss"] for each in mapped) < 1.05 * size
    assert all(each["Rss"] - each["Pss"] > 0.45 * size for each in whole)


@pytest.mark.parametrize(
    "arguments, said",
    [(["--batch-size", "1000"], f"takes 1 to {LIMIT} rows"), (["."], "is there already")],
)
def test_what_cannot_be_is_said_before_a_cluster_starts(
    task: Task, tmp_path: Path, arguments: list[str], said: str
) -> None:
    place = [] if "." in arguments else ["results"]
    command = [sys.executable, EXAMPLES / "batch.py", task.program, task.rows, *place, *arguments]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("shape", [(6,), (6, 4), (6, 2, 3), (1, 1)])
def test_rows_are_one_array_without_a_copy(shape: tuple[int, ...]) -> None:
    rows = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    column = batch.column_of(rows)
    found = batch.array_of(pa.chunked_array([column]))
    np.testing.assert_array_equal(found, rows)
    assert np.shares_memory(found, rows)
    part = batch.array_of(pa.chunked_array([column]).slice(len(rows) // 2))
    np.testing.assert_array_equal(part, rows[len(rows) // 2 :])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[[1, 2]], [[3, 4]]]),
        pa.array([[[1, 2]], [[3, 4]]], pa.large_list(pa.list_(pa.int64(), 2))),
        ArrowTensorArray.from_numpy(np.array([[[1, 2]], [[3, 4]]])),
    ],
    ids=["lists", "large and fixed lists", "tensors of Ray"],
)
def test_columns_of_all_forms_are_rows(column: pa.Array) -> None:
    for chunks in ([column], [column.slice(0, 1), column.slice(1)]):
        found = batch.array_of(pa.chunked_array(chunks))
        np.testing.assert_array_equal(found, [[[1, 2]], [[3, 4]]])


@pytest.mark.parametrize(
    "rows, said",
    [
        ([[1.0], [2.0, 3.0]], r"have \[1, 2\]"),
        ([[1.0], None], "None"),
        ([[1.0], [None]], "1 values are null"),
    ],
)
def test_rows_that_are_no_array_are_refused(rows: list, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        batch.array_of(pa.chunked_array([pa.array(rows)]))


def test_an_output_that_is_not_one_a_row_is_refused() -> None:
    predict = object.__new__(batch.Predict)
    predict.module = lambda rows: (rows, rows.sum(axis=0))
    with pytest.raises(ValueError, match=r"an output of 3 rows is \[2\]"):
        predict.run(np.ones((3, 2), np.float32))


def test_blocks_are_full_runs_and_enough_for_all_workers(task: Task) -> None:
    program = str(task.program)
    n = batch.rows_in_a_block(program, LIMIT, len(task.x), 2)
    assert n % LIMIT == 0 and 4 * 2 * n == len(task.x)
    assert batch.rows_in_a_block(program, LIMIT, 10**9, 2) == batch.RUNS_IN_A_BLOCK * LIMIT
    assert batch.rows_in_a_block(program, LIMIT, 3, 2) == LIMIT
