"""gather reads what copies of views show, and refuses bad positions as it does unfused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from executorch.kernels.optimized.fusion_test import Case, run


class Neighbours(nn.Module):
    """The features of each point's nearest points, [B, C, N] -> [B, C, N, k]."""

    def forward(self, x: Tensor) -> Tensor:
        c, n = x.shape[1], x.shape[2]
        points = x.transpose(1, 2)
        at = torch.cdist(points, points).topk(3, largest=False)[1]
        others = x.unsqueeze(2).expand(-1, -1, n, -1)
        return others.gather(3, at.unsqueeze(1).expand(-1, c, -1, -1))


class Rows(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return (x * 2).transpose(0, 1)[1:].gather(self.dim, (at + 0).t()) + 1


def test_neighbours_are_read_where_they_lie() -> None:
    inputs = [(torch.randn(b, 5, n),) for b, n in ((2, 9), (1, 4), (3, 16))]
    shapes = ({0: Dim("b", max=3), 2: Dim("n", min=4, max=16)},)
    runs = run(Case(Neighbours(), inputs, 1, shapes))
    assert runs.names.count("gather") == 1, runs.lines


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_operands_may_be_views_in_any_order(dim: int, dtype: torch.dtype) -> None:
    x = torch.randint(-99, 99, (6, 8)).to(dtype)
    case = Case(Rows(dim), [(x, torch.randint(0, 6, (4, 5)))], 1)
    runs = run(case)
    assert runs.names.count("gather") == 1, runs.lines


def test_bad_positions_are_refused() -> None:
    x, at = torch.randn(6, 8), torch.randint(0, 6, (4, 5))
    runs = run(Case(Rows(1), [(x, at)], 1))
    for bad in (-1, 6, 1 << 40):
        at[2, 3] = bad
        for _, method in (runs.fused, runs.plain):
            with pytest.raises(RuntimeError):
                method.call((x, at))
