"""Operators that write into their arguments, and those whose results are random."""

from __future__ import annotations

import pytest
import torch

from tests.ops.oracle import tolerance
from tests.ops.program import Call, run
from tests.ops.samples import ALL, FLOATS, Maker


@pytest.mark.parametrize("dtype", ALL)
def test_copy_broadcasts_and_converts_into_its_target(dtype: torch.dtype) -> None:
    m = Maker(dtype)
    pairs = [(m(2, 3), m(3)), (m(2, 3), m.long(2, 3, high=2)), (m.last(1, 2, 3, 4), m(2, 1, 1))]
    wants = [target.clone().copy_(source) for target, source in pairs]
    calls = [
        Call("aten::copy_", [target, source, False], [want], written=(0,))
        for (target, source), want in zip(pairs, wants, strict=True)
    ]
    for (got,), want in zip(run(calls), wants, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0, check_stride=False)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_writes_or_adds_at_the_indices(dtype: torch.dtype, accumulate: bool) -> None:
    m = Maker(dtype)
    cases = [
        (m(4, 5), (torch.tensor([0, 3]),), m(2, 5)),
        (m(4, 5), (None, torch.tensor([1, -1])), m(1)),
        (m(4, 5), (torch.tensor([0, 3]), torch.tensor([1, 1])), m(2)),
    ]
    wants = [torch.ops.aten.index_put_(x.clone(), list(i), v, accumulate) for x, i, v in cases]
    calls = [
        Call("aten::index_put_", [x, i, v, accumulate], [want], written=(0,))
        for (x, i, v), want in zip(cases, wants, strict=True)
    ]
    for (got,), want in zip(run(calls), wants, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_moves_its_running_statistics(dtype: torch.dtype, training: bool) -> None:
    m = Maker(dtype)
    for x in [m(4, 3), m(2, 3, 70), m(2, 3, 4, 5), m.last(2, 3, 4, 5)]:
        weight, bias, mean, var = m(3), m(3), m(3), m(3, low=1)
        exact = [t.to(torch.float64, copy=True) for t in (x, weight, bias, mean, var)]
        results = torch.ops.aten._native_batch_norm_legit(*exact, training, 0.1, 1e-5)
        wants = [t.to(dtype) for t in (exact[3], exact[4], *results)]
        call = Call(
            "aten::_native_batch_norm_legit.out",
            [x, weight, bias, mean, var, training, 0.1, 1e-5],
            wants,
            written=(3, 4),
        )
        for got, want in zip(run([call])[0], wants, strict=True):
            rtol, atol = tolerance([x], want)
            torch.testing.assert_close(got, want, rtol=rtol, atol=atol, check_stride=False)


def sample(name: str, args: list[object], *like: torch.Tensor) -> list[torch.Tensor]:
    return run([Call(name, args, list(like))])[0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_fill_the_unit_interval(dtype: torch.dtype) -> None:
    (x,) = sample("aten::rand.out", [[4000]], torch.empty(4000, dtype=dtype))
    assert x.min() >= 0
    assert x.max() < 1
    # The mean of n has the standard deviation 1 / sqrt(12 n): six of them.
    assert abs(x.double().mean() - 0.5) < 6 / (12 * 4000) ** 0.5


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_numbers_have_mean_zero_and_variance_one(dtype: torch.dtype) -> None:
    (x,) = sample("aten::randn.out", [[4000]], torch.empty(4000, dtype=dtype))
    assert abs(x.double().mean()) < 6 / 4000**0.5
    assert abs(x.double().var() - 1) < 6 * (2 / 4000) ** 0.5


def test_random_integers_reach_every_value_of_their_range() -> None:
    (x,) = sample("aten::randint.low_out", [-2, 3, [1000]], torch.empty(1000, dtype=torch.int64))
    assert x.unique().tolist() == [-2, -1, 0, 1, 2]


def test_a_permutation_has_every_number_once() -> None:
    (x,) = sample("aten::randperm.out", [100], torch.empty(100, dtype=torch.int64))
    assert x.sort().values.tolist() == list(range(100)) and x.tolist() != list(range(100))


def test_dropout_scales_what_it_keeps() -> None:
    x = Maker(torch.float32)(4000, low=1)
    out, kept = sample(
        "aten::native_dropout.out", [x, 0.25, True], x, torch.empty(4000, dtype=torch.bool)
    )
    torch.testing.assert_close(out, torch.where(kept, x / 0.75, 0.0))
    # The number kept has the standard deviation sqrt(n p (1 - p)).
    assert abs(int(kept.sum()) - 3000) < 6 * (4000 * 0.25 * 0.75) ** 0.5


def test_not_a_number_becomes_the_least_integer() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30, 0.5, 1.5])
    args = [x, 1.0, 0, -100, 100, torch.int8]
    (q,) = sample("quantized_decomposed::quantize_per_tensor.out", args, x.to(torch.int8))
    assert q.tolist() == [-100, 100, -100, 100, 0, 2]


def test_int32_saturates() -> None:
    x = torch.tensor([1e30, -1e30, 2.0**31])
    args = [x, 1.0, 0, -(2**31), 2**31 - 1, torch.int32]
    (q,) = sample("quantized_decomposed::quantize_per_tensor.out", args, x.to(torch.int32))
    assert q.tolist() == [2**31 - 1, -(2**31), 2**31 - 1]
