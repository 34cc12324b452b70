"""Time scales, and the comparison of outputs with reference outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import torch

ProgramOutput = Any  # a tensor, a list of tensors, a number, a string or None


class TimeScale(Enum):
    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"
    CYCLES = "cycles"


_PER_SECOND = {TimeScale.NS: 1e9, TimeScale.US: 1e6, TimeScale.MS: 1e3, TimeScale.S: 1.0}


def calculate_time_scale_factor(
    source_time_scale: TimeScale, target_time_scale: TimeScale
) -> float:
    """The number by which times of the source are divided to get them in the target. RuntimeError
    for cycles and a unit of time."""
    source, target = source_time_scale, target_time_scale
    for scale in (source, target):
        if not isinstance(scale, TimeScale):
            raise TypeError(f"time scale: expected one of TimeScale, found {scale!r:.80}")
    if (source is TimeScale.CYCLES) != (target is TimeScale.CYCLES):
        raise RuntimeError(
            "For TimeScale in cycles both the source and target time scale have to be in cycles; "
            f"found {source.value} and {target.value}."
        )
    return 1.0 if source is TimeScale.CYCLES else _PER_SECOND[source] / _PER_SECOND[target]


def to_float_tensor(value: Any) -> torch.Tensor:
    """A number or tensor as float64, NaN as 0."""
    try:
        tensor = torch.as_tensor(value, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"Cannot convert value of type {type(value)} to a tensor: {error}"
        ) from None
    return torch.where(tensor.isnan(), torch.zeros_like(tensor), tensor)


def l1(a: torch.Tensor, b: torch.Tensor) -> float:
    """sum |a - b|"""
    return (a - b).abs().sum().item()


def mse(a: torch.Tensor, b: torch.Tensor) -> float:
    """mean (a - b)^2"""
    return (a - b).square().mean().item()


def snr(a: torch.Tensor, b: torch.Tensor) -> float:
    """10 log10(mean a^2 / mean (a - b)^2), in dB: `a` is the signal; inf where they are equal."""
    return 10 * (a.square().mean() / (a - b).square().mean()).log10().item()


def cosine_similarity(a: torch.Tensor, b: torch.Tensor) -> float:
    product = a.norm() * b.norm()
    return ((a * b).sum() / product).item() if product else math.nan


_METRICS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], float]] = {
    "snr": snr,
    "mse": mse,
    "cosine_similarity": cosine_similarity,
}


def compare_results(
    reference_output: list[ProgramOutput],
    run_output: list[ProgramOutput],
    metrics: Sequence[str] | None = None,
    plot: bool = False,
) -> dict[str, list[float]]:
    """Print and return metric -> its value for each output, to two places.

    metrics  of "snr", "mse", "cosine_similarity"; all by default
    plot     also show them with matplotlib
    Lists of tensors are compared tensor by tensor; ValueError where outputs do not match.
    """
    if unknown := sorted(set(metrics or ()) - set(_METRICS)):
        raise ValueError(f"compare_results: no metrics {unknown}; there are {list(_METRICS)}")
    references, runs = flat(reference_output), flat(run_output)
    if len(references) != len(runs):
        raise ValueError(f"{len(references)} reference outputs, but {len(runs)} run outputs")
    pairs = [
        (to_float_tensor(a), to_float_tensor(b)) for a, b in zip(references, runs, strict=True)
    ]
    for i, (a, b) in enumerate(pairs):
        if a.shape != b.shape:
            raise ValueError(f"output {i}: expected shape {list(a.shape)}, found {list(b.shape)}")
    results = {
        name: [round(_METRICS[name](a, b), 2) for a, b in pairs]
        for name in (metrics if metrics is not None else _METRICS)
    }
    for name, values in results.items():
        print(name)
        print("-" * 20)
        for i, value in enumerate(values):
            print(f"{i:<5}{value:>8.5f}")
        print("\n")
    if plot:
        _plot(results)
    return results


def flat(values: Any) -> list[Any]:
    """Lists and tuples, however nested, as one list."""
    if isinstance(values, (list, tuple)):
        return [leaf for value in values for leaf in flat(value)]
    return [values]


def _plot(results: dict[str, list[float]]) -> None:
    import matplotlib.pyplot as plt

    for name, values in results.items():
        plt.figure()
        plt.plot(range(len(values)), values, "o-")
        plt.xlabel("output")
        plt.ylabel(name)
        plt.show()
