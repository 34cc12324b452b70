"""Runs samples through all stages: export, edge dialect, program, runtime.

Many samples make one module, since most of the time of an export does not depend on their number.
Where the module cannot be exported or run, its halves are tried, down to single samples.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.error import first_line
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import copy_variant
from executorch.runtime import Runtime
from tests.conformance.halves import References, farther_than_eager, references
from tests.conformance.not_exported import is_expected
from tests.conformance.samples import Sample
from tests.ops.oracle import ANY_VALUE, FIRST_ONLY, HALVES, map_tensors, results_of, tolerance

# The second result says where the first one was found.
POSITIONS = {"aten::kthvalue", "aten::median", "aten::sort", "aten::topk"}

# Results after the first that are not asked for: eager leaves them empty, export declares them.
UNASKED_EMPTY = {"aten::unique_consecutive"}


@dataclass
class Outcome:
    """`status`: passed; failed; refused (eager does not take it); skipped (not exported, for a
    reason in not_exported.py). `called`: the program really calls the operator."""

    sample: Sample
    status: str
    reason: str = ""
    called: bool = False


class _Batch(torch.nn.Module):
    def __init__(self, samples: list[Sample]) -> None:
        super().__init__()
        self.samples = samples

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        left = iter(tensors)
        results: list[torch.Tensor] = []
        for sample in self.samples:
            args, kwargs = map_tensors(lambda _: next(left), (sample.args, sample.kwargs))
            results += _flat(sample.op(*args, **kwargs))
        return results


def _flat(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log of the runtime and of the exporter, which bisection would repeat."""
    saved = os.dup(2)
    sys.stderr.flush()
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
        os.dup2(saved, 2)
        os.close(saved)


def wanted(sample: Sample) -> list[torch.Tensor] | str:
    """Eager's results, or why it has none."""
    try:
        torch.manual_seed(0)
        return results_of(sample.op, sample.args, sample.kwargs, sample.dtype)
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)[:160]}"


def run(name: str, samples: list[Sample]) -> list[Outcome]:
    """One outcome per sample, in order, of the operator registered as `name`."""
    outcomes: list[Outcome | None] = [None] * len(samples)
    wants: dict[int, list[torch.Tensor]] = {}
    with quiet():
        for i, sample in enumerate(samples):
            want = wanted(sample)
            if isinstance(want, str):
                outcomes[i] = Outcome(sample, "refused", want)
            else:
                wants[i] = want
        for i, outcome in _run(name, samples, list(wants), wants):
            outcomes[i] = outcome
    return [o for o in outcomes if o is not None]


def _run(
    name: str, samples: list[Sample], chosen: list[int], wants: dict[int, list[torch.Tensor]]
) -> Iterator[tuple[int, Outcome]]:
    if not chosen:
        return
    batch = [samples[i] for i in chosen]
    try:
        program = _export(batch)
    except Exception as error:
        if len(chosen) == 1:
            reason = f"export: {_reason(error)}"
            status = "skipped" if is_expected(name, reason) else "failed"
            yield chosen[0], Outcome(batch[0], status, reason)
        else:
            yield from _halves(name, samples, chosen, wants)
        return
    try:
        found = iter(_execute(program.buffer, [t for s in batch for t in s.tensors()]))
    except Exception as error:
        if len(chosen) == 1:
            yield chosen[0], Outcome(batch[0], "failed", f"runtime: {_reason(error)}")
        else:
            yield from _halves(name, samples, chosen, wants)
        return
    called = name in {
        f"{op.name}.{op.overload}" if op.overload else op.name
        for plan in program.executorch_program.execution_plan
        for op in plan.operators
    }
    for i in chosen:
        got = [next(found) for _ in wants[i]]
        problem = difference(samples[i], got, wants[i])
        yield i, Outcome(samples[i], "failed" if problem else "passed", problem, called)


def _halves(name: str, samples: Any, chosen: list[int], wants: Any) -> Iterator[Any]:
    middle = len(chosen) // 2
    yield from _run(name, samples, chosen[:middle], wants)
    yield from _run(name, samples, chosen[middle:], wants)


def _export(batch: list[Sample]) -> Any:
    inputs = tuple(t for sample in batch for t in sample.tensors())
    exported = torch.export.export(_Batch(batch), inputs, strict=False)
    kept = {s.op for s in batch if copy_variant(s.op) is None}  # not decomposed, unless a view
    edge = to_edge(exported, compile_config=EdgeCompileConfig(preserve_ops=list(kept)))
    return edge.to_executorch(ExecutorchBackendConfig(remove_view_copy=False))


def _execute(buffer: bytes, inputs: list[torch.Tensor]) -> list[Any]:
    method = Runtime.get().load_program(buffer).load_method("forward")
    assert method is not None
    return list(method.execute(inputs))


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    telling = [line for line in lines if "out" in line and ":" in line and "Error" not in line]
    return f"{type(error).__name__}: {(telling or lines)[0].strip()[:200]}"


def picked(sample: Sample, positions: torch.Tensor) -> torch.Tensor:
    """The elements of the input at `positions` along the operator's dim."""
    arguments = {a.name: a.default_value for a in sample.op._schema.arguments}
    arguments |= dict(zip(arguments, sample.args, strict=False)) | sample.kwargs
    source, dim = arguments["self"], arguments.get("dim", -1)
    signed = getattr(torch, str(source.dtype).removeprefix("torch.u"), source.dtype)
    if source.dim() == 0:
        return source
    reduced = positions.dim() < source.dim()
    found = source.view(signed).gather(dim, positions.unsqueeze(dim) if reduced else positions)
    return (found.squeeze(dim) if reduced else found).view(source.dtype)


def difference(sample: Sample, got: list[Any], want: list[torch.Tensor]) -> str:
    """What is wrong with `got`; empty if nothing."""
    name = sample.op._schema.name
    if name in FIRST_ONLY:
        got, want = got[:1], want[:1]
    halves: References | None = None
    for i, (found, right) in enumerate(zip(got, want, strict=True)):
        if name in UNASKED_EMPTY and i > 0 and right.numel() == 0:
            continue
        if not isinstance(found, torch.Tensor):
            return f"a {type(found).__name__} instead of a tensor"
        if found.shape != right.shape or found.dtype != right.dtype:
            return f"{found.dtype}{list(found.shape)} instead of {right.dtype}{list(right.shape)}"
        if name in ANY_VALUE:
            continue
        if name in POSITIONS and i == 1:  # of equal elements any order is right
            found, right = picked(sample, found), got[0]
        if right.dtype in HALVES:
            halves = halves or references(sample)
            if halves.exact is not None and halves.exact[i].is_floating_point():
                eager = halves.eager[i] if halves.eager is not None else None
                if problem := farther_than_eager(sample, found, eager, halves.exact[i]):
                    return problem
                continue
        rtol, atol = tolerance(sample.tensors(), right, name)
        try:
            torch.testing.assert_close(
                found, right, rtol=rtol, atol=atol, equal_nan=True, check_stride=False
            )
        except AssertionError as error:
            return " ".join(str(error).split())[:240]
    return ""
