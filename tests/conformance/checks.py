"""Checks of whole operators, one after the other or in processes, which import this module."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator

from executorch.runtime import Runtime
from tests.conformance.report import Row

# Tested beside their sources: operators on numbers and memory, which no module calls by itself, and
# those of language models. Tested in tests/ops: operators that write into arguments; bincount,
# whose result needs a bound; and choose_qparams_per_token, whose fake result has not eager's dtype.
NOT_SAMPLED = re.compile(
    r"executorch_prim::|et_copy::|llama::|preprocess::|aten::(sym_|_local_scalar_dense|copy_$"
    r"|index_put_$|bincount\.out|_native_batch_norm_legit\.out)"
    r"|quantized_decomposed::choose_qparams_per_token\.out"
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
