"""Rotary positions in the forms that models write them, beside such that only look like them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from executorch.kernels.optimized.fusion_test import HEADS, Case, T, run


class Rotary(nn.Module):
    """Forms in which models write it, and such that are something else."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        if self.form == "some":  # as Phi does: the rest of a head stays
            x, rest = x[..., :half], x[..., half:]
            return torch.cat([self.rotate(x, cos, sin), rest], -1)
        return self.rotate(x.transpose(1, 2), cos, sin)

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        low, high = x[..., :half], x[..., half:]
        match self.form:
            case "sum first":
                return torch.cat([-high, low], -1) * sin + cos * x
            case "parts":
                low, high = x.split(half, -1)
            case "sizes":
                low, high = torch.split(x, [half, half], -1)
            case "positive":
                return x * cos + torch.cat([high, low], -1) * sin
            case "swapped":
                return x * cos + torch.cat([-low, high], -1) * sin
            case "twice":
                return 2 * x * cos + torch.cat([-high, low], -1) * sin
            case "overlap":
                return x * cos + torch.cat([-x[..., half - 1 : -1], low], -1) * sin
            case "kept":
                rotated = torch.cat([-high, low], -1)
                return (x * cos + rotated * sin) * rotated.abs()
        return x * cos + torch.cat([-high, low], -1) * sin


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("tables", ["of positions", "of the batch"])
@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("plain", True),
        ("sum first", True),
        ("parts", True),
        ("sizes", True),
        ("some", True),
        ("positive", False),
        ("swapped", False),
        ("twice", False),
        ("overlap", False),
        ("kept", False),
    ],
)
def test_rotary_positions(form: str, found: bool, tables: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)

    def inputs(b: int, t: int) -> tuple[Tensor, ...]:
        shape = (b, HEADS, t, 12) if form == "some" else (b, t, HEADS, 12)
        width = 6 if form == "some" else 12
        table = (t, width) if tables == "of positions" else (b, 1, t, width)
        return tuple(torch.randn(s).to(dtype) for s in (shape, table, table))

    b, t = Dim("b", max=4), Dim("t", max=T)
    table = {0: t} if tables == "of positions" else {0: b, 2: t}
    x = {0: b, 2: t} if form == "some" else {0: b, 1: t}
    case = Case(
        Rotary(form), [inputs(*s) for s in ((2, 8), (1, 1), (4, 31))], 64, (x, table, table)
    )
    runs = run(case)
    assert runs.names.count("rotary") == found, runs.lines
