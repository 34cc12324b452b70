"""Size, speed and quality of a program beside the model it was exported from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from executorch.exir.side_effects import copied
from executorch.exir.torch_internals import tree_flatten


@dataclass(frozen=True)
class Measurement:
    """Times are medians in milliseconds; `weights` and `bytes` are of the model and the program."""

    bytes: int
    weights: int
    load_ms: float
    run_ms: float
    eager_ms: float
    max_error: float  # largest absolute difference of the outputs
    sqnr_db: float  # signal to noise of all floating-point outputs; infinite where they are equal
    loss: float | None = None  # what `evaluate` gave for the program
    eager_loss: float | None = None

    def rows(self) -> list[tuple[str, str, str]]:
        """name, program, model"""
        rows = [
            ("size", megabytes(self.bytes), megabytes(self.weights) + " of weights"),
            ("load", f"{self.load_ms:.2f} ms", ""),
            ("run", f"{self.run_ms:.2f} ms", f"{self.eager_ms:.2f} ms"),
            ("largest error", f"{self.max_error:.2g}", ""),
            ("signal to noise", f"{self.sqnr_db:.1f} dB", ""),
        ]
        if self.loss is not None and self.eager_loss is not None:
            rows.append(("evaluation", f"{self.loss:.5f}", f"{self.eager_loss:.5f}"))
        return rows


def measure(
    program: bytes,
    model: torch.nn.Module,
    inputs: tuple[Any, ...],
    *,
    method: str = "forward",
    evaluate: Callable[[Callable[..., Any]], float] | None = None,
    seconds: float = 1.0,
) -> Measurement:
    """Compare `program` in the C++ runtime with `model` in eager PyTorch on `inputs`.

    evaluate  a figure of quality, such as a loss: called with a function that takes the model's
              arguments and returns its first output, once for the program and once for the model
    seconds   about how long each is timed
    """
    from executorch.runtime import Runtime

    began = time.perf_counter()
    loaded = Runtime.get().load_program(program).load_method(method)
    load_ms = (time.perf_counter() - began) * 1e3
    assert loaded is not None
    own = copied(inputs)
    flat = tree_flatten(own)[0]
    with torch.no_grad():
        expected = [v for v in tree_flatten(model(*copied(inputs)))[0] if isinstance(v, Tensor)]
        found = [v for v in loaded.execute(flat) if isinstance(v, Tensor)]
        max_error, sqnr = _difference(found, expected)
        run_ms = _median_ms(lambda: loaded.execute(flat), seconds)
        eager_ms = _median_ms(lambda: model(*own), seconds)
        loss = eager_loss = None
        if evaluate is not None:
            loss = evaluate(lambda *a: loaded.execute(tree_flatten(a)[0])[0])
            eager_loss = evaluate(lambda *a: tree_flatten(model(*a))[0][0])
    weights = {w.untyped_storage().data_ptr(): w.untyped_storage().nbytes() for w in _state(model)}
    return Measurement(
        len(program),
        sum(weights.values()),
        load_ms,
        run_ms,
        eager_ms,
        max_error,
        sqnr,
        loss,
        eager_loss,
    )


def _state(model: torch.nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def _difference(found: list[Tensor], expected: list[Tensor]) -> tuple[float, float]:
    noise = signal = worst = 0.0
    for f, e in zip(found, expected, strict=False):
        if e.is_floating_point() and e.numel():
            off = f.double() - e.double()
            worst = max(worst, float(off.abs().max()))
            noise += float(off.square().sum())
            signal += float(e.double().square().sum())
    ratio = torch.tensor(signal / noise if noise else float("inf"))
    return worst, float(10 * ratio.log10())


def _median_ms(function: Callable[[], Any], seconds: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 1000):
        began = time.perf_counter()
        function()
        times.append((time.perf_counter() - began) * 1e3)
    return median(times)


def megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
