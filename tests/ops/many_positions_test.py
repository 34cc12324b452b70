"""Advanced indexing, searches and masks at more positions than one block has, in other layouts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.ops.program import Call, run

MANY = 9000  # several blocks, shared by threads


def places(n: int, extent: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    torch.manual_seed(n + extent)
    return torch.randint(-extent, extent, (n,), dtype=dtype)


def reflected(n: int, pad: int) -> torch.Tensor:
    """The places of a row that is padded by its own elements."""
    return (n - 1 - (torch.arange(-pad, n + pad).abs() - (n - 1)).abs()).abs()


def image(*shape: int, last: bool = False) -> torch.Tensor:
    torch.manual_seed(len(shape))
    x = torch.randn(*shape)
    return x.to(memory_format=torch.channels_last) if last else x


IMAGE = image(2, 3, 60, 70)
INDEXED: dict[str, tuple[torch.Tensor, tuple[Any, ...]]] = {
    "of a vector": (image(50), (places(MANY, 50),)),
    "rows": (image(40, 33), (places(MANY, 40),)),
    "columns": (image(3, 50, 1), (None, places(MANY, 50))),
    "columns that follow one another": (image(3, 50), (None, reflected(50, 49).repeat(40))),
    "int32": (image(3, 50).half(), (None, places(MANY, 50, torch.int32))),
    "few columns": (image(300, 5).double(), (None, torch.tensor([4, 0, -2]))),
    "a frame": (IMAGE, (None, None, reflected(60, 9).reshape(-1, 1), reflected(70, 3))),
    "a frame around pixels": (
        image(2, 3, 60, 70, last=True),
        (None, None, reflected(60, 9).reshape(-1, 1), reflected(70, 3)),
    ),
    "dims apart": (IMAGE, (places(MANY, 2), None, places(MANY, 60))),
    "flags": (IMAGE > 0, (None, places(70, 3).reshape(70, 1), None, places(80, 70))),
    "a mask": (IMAGE, (None, None, IMAGE[0, 0] > 0)),
    "a mask and a number": (IMAGE, (IMAGE[:, :, 0, 0] > -9, None, torch.tensor(5))),
    "one true": (IMAGE, (torch.tensor([False, True]), None, places(MANY, 60))),
}


@pytest.mark.parametrize("name", INDEXED)
def test_index(name: str) -> None:
    x, indices = INDEXED[name]
    full = tuple(slice(None) if i is None else i.long() if i.dtype.itemsize == 4 else i
                 for i in indices)  # fmt: skip
    expected = [x[full].contiguous()]
    if expected[0].dim() == 4:
        expected.append(expected[0].contiguous(memory_format=torch.channels_last))
    for (found,), right in zip(
        run([Call("aten::index.Tensor_out", [x, indices], [t]) for t in expected]),
        expected,
        strict=True,
    ):
        assert torch.equal(found, right)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool])
def test_index_put_keeps_the_order_of_positions(accumulate: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for shape, dims in [((50,), 1), ((40, 3), 1), ((3, 50), 2), ((2, 20, 20), 3)]:
        x = torch.randint(0, 2, shape).to(dtype)
        at = [places(MANY, shape[d]) for d in range(len(shape) if dims != 2 else 2)]
        indices: tuple[Any, ...] = (at[0],) if dims == 1 else (None, *at[1:])
        moved = x.movedim(0, -1) if dims != 1 else x  # indexed dims first
        own = moved.shape[len(indices) - (dims != 1) :]
        values = torch.randint(0, 2, (MANY, *own)).to(dtype)
        expected = moved.clone()
        for i in range(MANY):
            place = tuple(int(t[i]) for t in indices if t is not None)
            expected[place] = expected[place] + values[i] if accumulate else values[i]
        if dims != 1:
            values, expected = values.movedim(-1, 0), expected.movedim(-1, 0)
        right = [expected.contiguous()]
        call = Call("aten::index_put.out", [x, indices, values.contiguous(), accumulate], right)
        ((found,),) = run([call])
        assert torch.equal(found, right[0])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.uint8])
def test_searches(right: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    sequences = torch.randint(0, 90, (3, 77)).to(dtype)
    values = torch.randint(0, 90, (3, 4000)).to(torch.float32)
    if dtype.is_floating_point:
        values[0, ::99] = torch.nan
    order = torch.argsort(sequences, stable=True)
    ordered = torch.gather(sequences, 1, order)
    for v in (values, values.nan_to_num(7).to(torch.int32)):
        expected = torch.searchsorted(ordered.double(), v.double(), right=right)
        one = torch.searchsorted(ordered[1].double(), v.double(), right=right)
        name, side = "aten::searchsorted.Tensor_out", "right" if right else "left"
        found = run(
            [
                Call(name, [ordered, v, False, right, side, None], [expected]),
                Call(name, [sequences, v, False, right, side, order], [expected]),
                Call("aten::bucketize.Tensor_out", [v, ordered[1], False, right], [one]),
            ]
        )
        assert torch.equal(found[0][0], expected)
        assert torch.equal(found[1][0], expected)
        assert torch.equal(found[2][0], one)


@pytest.mark.parametrize("shape", [(), (0, 3), (MANY,), (7, 1, 1300), (3, 500, 2)])
def test_nonzero(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    for x in (torch.randint(0, 3, shape), torch.randn(shape) > 1):
        expected = torch.nonzero(x)
        ((found,),) = run([Call("aten::nonzero.out", [x], [expected])])
        assert torch.equal(found, expected)


def test_product_of_many() -> None:
    torch.manual_seed(2)
    whole = torch.randint(-9, 9, (3, 1001)) * 2 + 1  # wraps
    parts = torch.rand(3, 1001, dtype=torch.float64) + 0.5
    calls = [
        Call("aten::prod.int_out", [x, dim, False, None], [x.prod(dim)])
        for x in (whole, parts, parts.float())
        for dim in (0, 1)
    ]
    for (found,), call in zip(run(calls), calls, strict=True):
        torch.testing.assert_close(found, call.results[0])
