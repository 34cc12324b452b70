"""ArgMaxPooling2d of a payload beside torch.nn.functional.max_pool2d(return_indices=True).

Windows lie side by side: their stride is their size. An index is the place in its window, by rows;
of equal values the first counts.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import export
from torch.nn import functional as F

from executorch.backends.xnnpack import reference
from executorch.backends.xnnpack.serialization.payload import (
    DATATYPES,
    EXTERNAL_INPUT,
    EXTERNAL_OUTPUT,
    Payload,
)
from executorch.exir import to_edge
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.runtime import Runtime

# The shape [n, h, w, c], and the window's height and width.
CASES = [
    ((1, 2, 2, 1), (2, 2)),
    ((1, 4, 6, 3), (2, 3)),
    ((2, 9, 9, 5), (3, 3)),
    ((3, 7, 5, 17), (7, 5)),
    ((1, 8, 10, 33), (1, 5)),
    ((2, 6, 3, 300), (6, 1)),
    # Rows and columns that fill no window are left out.
    ((1, 11, 7, 4), (4, 2)),
    ((2, 5, 9, 2), (3, 4)),
]


def expected(x: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Values, and places in windows, [n, h / size[0], w / size[1], c]."""
    values, places = F.max_pool2d(x.permute(0, 3, 1, 2), size, return_indices=True)
    width = x.shape[2]
    row, column = places // width % size[0], places % width % size[1]
    indices = row * size[1] + column
    return values.permute(0, 2, 3, 1).contiguous(), indices.permute(0, 2, 3, 1).contiguous()


def payload_of(
    x: Tensor, size: tuple[int, int], index_dtype: torch.dtype, padding: int = 0
) -> bytes:
    payload = Payload(n_externals=3)
    n, h, w, c = x.shape
    pooled = [n, (h + 2 * padding) // size[0], (w + 2 * padding) // size[1], c]
    ids = [
        payload.value(DATATYPES[x.dtype], x.shape, (0, EXTERNAL_INPUT)),
        payload.value(DATATYPES[x.dtype], pooled, (1, EXTERNAL_OUTPUT)),
        payload.value(DATATYPES[index_dtype], pooled, (2, EXTERNAL_OUTPUT)),
    ]
    payload.node("ArgMaxPooling2d", *[padding] * 4, *size, *ids, 0)
    return payload.to_bytes()


class Pooling(torch.nn.Module):
    """What the payload stands for: it has as many results, of the same types and shapes."""

    def __init__(self, size: tuple[int, int], index_dtype: torch.dtype) -> None:
        super().__init__()
        self.size, self.index_dtype = size, index_dtype

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        values, indices = expected(x, self.size)
        return values, indices.to(self.index_dtype)


def run(x: Tensor, size: tuple[int, int], index_dtype: torch.dtype, **options: Any) -> list[Any]:
    edge = to_edge(export(Pooling(size, index_dtype), (x,))).exported_program()
    payload = payload_of(x, size, index_dtype, **options)
    program = LoweredBackendModule(edge, "XnnpackBackend", payload, []).buffer()
    return list(Runtime.get().load_program(program).load_method("forward").execute([x]))


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize(("shape", "size"), CASES, ids=str)
def test_values_and_indices_are_those_of_max_pool2d(
    shape: tuple[int, ...], size: tuple[int, int], index_dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    ties = torch.randint(-1, 2, shape).float()
    zeros = torch.zeros(shape).copysign(x)  # 0 and -0 are equal
    for data in (x, ties, zeros, torch.full(shape, -torch.inf)):
        values, indices = run(data, size, index_dtype)
        want_values, want_indices = expected(data, size)
        assert torch.equal(values, want_values)
        assert torch.equal(indices, want_indices.to(index_dtype)) and indices.dtype == index_dtype
        (node,) = reference.read(payload_of(data, size, index_dtype), {}).nodes
        again = node.function([data.double()])
        assert torch.equal(again[0], want_values.double())
        assert torch.equal(again[1], want_indices.double())


def test_the_first_nan_of_a_window_is_its_largest() -> None:
    x = torch.tensor([1.0, torch.nan, 3.0, torch.nan]).reshape(1, 2, 2, 1)
    values, indices = run(x, (2, 2), torch.int32)
    assert values.isnan().all() and indices.item() == 1


def test_padding_is_refused() -> None:
    with pytest.raises(RuntimeError):
        run(torch.randn(1, 4, 4, 2), (2, 2), torch.int32, padding=1)
