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


class Selects(nn.Module):
    """Comparisons and logic between arithmetic, with a mask and a NaN among the inputs."""

    def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        far = ((x > 0.1) & ~(y >= x)) | mask
        near = torch.where(x == y, x * 2, y - 1)
        return torch.where(far, near.abs(), torch.where(x != x, y, x * y)) + mask.to(x.dtype)


class Bounds(nn.Module):
    """The comparison is a result itself."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        below = x * 2 < y
        return below, torch.where(below, x, y)


def numbers(shape: tuple[int, ...], dtype: torch.dtype, nan: int) -> Tensor:
    x = torch.randn(shape).mul(4).round().div(4).to(dtype)  # some are equal
    if x.numel() > nan:
        x.view(-1)[nan] = torch.nan
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 1000), (300, 2), (1,), (0, 4)])
def test_comparisons_and_choices_are_part_of_the_pass(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    for mask_shape in (shape, shape[-1:]):
        module = Selects()
        inputs = numbers(shape, dtype, 1), numbers(shape, dtype, 2), torch.rand(mask_shape) > 0.5
        method, fused = load(module, inputs)
        assert len(fused) == 1 and "where" in fused[0] and "gt" in fused[0], fused
        # Intermediate results of the 16-bit types are not rounded in the pass.
        eps = 0 if dtype == torch.float32 else 2 * torch.finfo(dtype).eps
        torch.testing.assert_close(
            method.call(inputs)[0], module(*inputs), rtol=eps, atol=eps, equal_nan=True
        )


def test_a_comparison_that_is_a_result_stays() -> None:
    torch.manual_seed(0)
    module, inputs = Bounds(), (torch.randn(40, 3), torch.randn(40, 3))
    method, _ = load(module, inputs)
    for ours, eager in zip(method.call(inputs), module(*inputs), strict=True):
        assert torch.equal(ours, eager)


@pytest.mark.parametrize("compare", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("with_number", [True, False])
def test_each_comparison(compare: str, with_number: bool) -> None:
    class Chosen(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            test = getattr(torch, compare)(x, 0.25 if with_number else y)
            return torch.where(test, x + 1, y)

    torch.manual_seed(0)
    module, inputs = (
        Chosen(),
        (numbers((70, 9), torch.float32, 1), numbers((70, 9), torch.float32, 2)),
    )
    method, fused = load(module, inputs)
    assert len(fused) == 1 and compare in fused[0], fused
    torch.testing.assert_close(
        method.call(inputs)[0], module(*inputs), rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("function", ["sign", "floor", "ceil", "trunc", "round", "leaky_relu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_each_rounding_is_part_of_the_pass(function: str, dtype: torch.dtype) -> None:
    class Rounds(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            f = getattr(torch, function, None) or getattr(F, function)
            return f(x * 2) + x

    torch.manual_seed(0)
    module, x = Rounds(), numbers((40, 21), dtype, 1)
    x.view(-1)[2:4] = torch.tensor([-0.0, -torch.inf])
    method, fused = load(module, (x,))
    assert len(fused) == 1 and function in fused[0], fused
    eps = 0 if dtype == torch.float32 else 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(method.call((x,))[0], module(x), rtol=eps, atol=eps, equal_nan=True)
