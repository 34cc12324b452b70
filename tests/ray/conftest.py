"""A program whose weights are most of it, and rows for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

WIDTH, HIDDEN, LIMIT = 512, 8192, 16  # 32 MiB of weights; rows in one run
N_FILES, N_ROWS = 8, 512  # in each


@dataclass
class Task:
    program: Path
    rows: Path  # a folder of Parquet files: id, x
    x: np.ndarray  # float32 [N_FILES * N_ROWS, WIDTH], by id
    y: np.ndarray  # what one process computes of it

    @property
    def tolerance(self) -> float:
        """The order of a sum may depend on how many rows are in one run."""
        return float(np.finfo(np.float32).eps * HIDDEN * np.abs(self.y).max())


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch

    from executorch.export import export
    from executorch.runtime import Module

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("ray")
    first, second = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, WIDTH)
    net = torch.nn.Sequential(first, torch.nn.ReLU(), second).eval()
    sizes = {0: torch.export.Dim("rows", max=LIMIT)}
    program = folder / "net.pte"
    export(net, [(torch.ones(2, WIDTH),)], dynamic_shapes=(sizes,)).save_to_pte(str(program))

    rows = folder / "rows"
    rows.mkdir()
    x = np.random.default_rng(0).standard_normal((N_FILES * N_ROWS, WIDTH), dtype=np.float32)
    for i in range(N_FILES):
        ids = range(i * N_ROWS, (i + 1) * N_ROWS)
        table = pa.table({"id": list(ids), "x": list(x[ids.start : ids.stop])})
        pq.write_table(table, rows / f"{i}.parquet")
    with Module(program) as module:
        y = np.concatenate([np.asarray(module(x[i : i + LIMIT])) for i in range(0, len(x), LIMIT)])
    return Task(program, rows, x, y)
