"""Sorting, the largest, and what is unique, among more elements than comparisons sort."""

from __future__ import annotations

import pytest
import torch

from tests.ops.program import Call, run

DTYPES = [torch.uint8, torch.int16, torch.int64, torch.float32, torch.float64, torch.bfloat16]
MANY = 3000


def numbers(dtype: torch.dtype, *shape: int, distinct: int = 2**40) -> torch.Tensor:
    """Some are alike, some are not finite."""
    torch.manual_seed(0)
    x = torch.randint(0, distinct, shape, dtype=torch.int64)
    if not dtype.is_floating_point:
        return x.to(dtype)
    y = (x - distinct // 2).to(dtype) / 7
    y.view(-1)[::50] = torch.nan
    y.view(-1)[::70] = -torch.inf
    y.view(-1)[::90] = -0.0
    return y


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("distinct", [20, 2**40])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable(dtype: torch.dtype, distinct: int, descending: bool) -> None:
    for shape, dim in [((MANY,), 0), ((3, MANY), 1), ((MANY, 3), 0)]:
        x = numbers(dtype, *shape, distinct=distinct)
        expected = torch.sort(x, dim=dim, descending=descending, stable=True)
        ((values, indices),) = run([Call("aten::sort.values", [x, dim, descending], [*expected])])
        assert torch.equal(indices, expected.indices)
        torch.testing.assert_close(values, expected.values, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("k", [10, 1000, MANY])
@pytest.mark.parametrize("largest", [False, True])
def test_the_first_are_the_first_of_all_sorted(dtype: torch.dtype, k: int, largest: bool) -> None:
    x = numbers(dtype, 2, MANY, distinct=500)
    expected = [t[:, :k] for t in torch.sort(x, dim=1, descending=largest, stable=True)]
    call = Call("aten::topk.values", [x, k, 1, largest, True], expected)
    ((values, indices),) = run([call])
    assert torch.equal(indices, expected[1])
    torch.testing.assert_close(values, expected[0], equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("distinct", [1, 3, 500, 2**40])
@pytest.mark.parametrize("dim", [0, 1])
def test_one_place_of_all_sorted(dtype: torch.dtype, distinct: int, dim: int) -> None:
    x = numbers(dtype, *((2, MANY) if dim == 1 else (MANY, 2)), distinct=distinct)
    values, indices = torch.sort(x, dim=dim, stable=True)
    calls = [
        Call(
            "aten::kthvalue.values",
            [x, k, dim, False],
            [t.select(dim, k - 1).contiguous() for t in (values, indices)],
        )
        for k in (1, 2, MANY // 3, MANY)
    ]
    middle = [t.narrow(dim, (MANY - 1) // 2, 1) for t in (values, indices)]
    if dtype.is_floating_point:  # a median of numbers with NaN is the first NaN
        place = torch.where(
            torch.isnan(x).any(dim, True), torch.isnan(x).int().argmax(dim, True), middle[1]
        )
        middle = [x.gather(dim, place), place]
    calls.append(Call("aten::median.dim_values", [x, dim, True], middle))
    for call, (found, places) in zip(calls, run(calls), strict=True):
        assert torch.equal(places, call.results[1])
        torch.testing.assert_close(found, call.results[0], equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("distinct", [3, 2**40])
def test_unique_elements_and_slices(dtype: torch.dtype, distinct: int) -> None:
    x = numbers(dtype, MANY, 2, distinct=distinct)
    if dtype.is_floating_point:  # eager's order of slices with NaN is another
        x = torch.nan_to_num(x, 0, 9, -9)
    flat = torch.unique(x, return_inverse=True, return_counts=True)
    slices = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    found = run(
        [
            Call("aten::_unique2.out", [x, True, True, True], [*flat]),
            Call("aten::unique_dim.out", [x, 0, True, True, True], [*slices]),
        ]
    )
    for ours, expected in zip(found, (flat, slices), strict=True):
        for mine, wanted in zip(ours, expected, strict=True):
            assert torch.equal(mine, wanted)


def test_long_slices_that_are_alike_to_their_end() -> None:
    x = torch.zeros(300, 100, dtype=torch.int64)
    x[torch.arange(0, 300, 7), 99] = torch.arange(0, 300, 7) % 5
    expected = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    (found,) = run([Call("aten::unique_dim.out", [x, 0, True, True, True], [*expected])])
    for mine, wanted in zip(found, expected, strict=True):
        assert torch.equal(mine, wanted)
