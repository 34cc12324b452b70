"""Chains of elementwise operators run in one pass, with the casts at their ends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import export
from torch.nn import functional as F

from executorch.exir import to_edge
from executorch.extension.pybindings import _C


class Silu(nn.Module):
    """Decomposed in float: a cast, two operators and a cast."""

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x)


class ScaledBy(nn.Module):
    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return (x.float() * scale + 1).to(x.dtype)


class Rounded(nn.Module):
    """What it casts back and forth has fewer bits afterwards."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return (x * 1.25).to(self.dtype).float() - x


def load(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[_C.Method, list[str]]:
    buffer = to_edge(export(module.eval(), inputs)).to_executorch().buffer
    method = _C._load_program_from_buffer(buffer).load_method("forward")
    lines = _C._last_fusion().splitlines()
    return method, [line.split(" <- ")[1] for line in lines if ": elementwise <- " in line]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 1000), (1,), (0, 4)])
def test_casts_are_part_of_the_pass(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x, scale = torch.randn(shape).to(dtype), torch.randn(shape[-1])
    for module, inputs in ((Silu(), (x,)), (ScaledBy(), (x, scale))):
        method, fused = load(module, inputs)
        assert len(fused) == 1, fused
        eps = torch.finfo(dtype).eps  # both round once, from float
        torch.testing.assert_close(method.call(inputs)[0], module(*inputs), rtol=eps, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_in_the_middle_stays(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    module, x = Rounded(dtype), torch.randn(2, 999)
    method, _ = load(module, (x,))
    assert torch.equal(method.call((x,))[0], module(x))
