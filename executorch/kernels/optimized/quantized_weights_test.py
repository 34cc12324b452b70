"""Weights that a program stores as 8-bit integers are multiplied as they are stored."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_primitives import MappingType

from executorch.kernels.optimized.fusion_test import Case, run

ROWS = (5, 1, 2, 3, 15, 16, 40)
SMALL, LARGE = (96, 160), (1024, 1024)  # large: a product reads its weights by rows
CONFIGS = {
    "rows": IntxWeightOnlyConfig(torch.int8, PerAxis(0)),
    "groups of int4": IntxWeightOnlyConfig(torch.int4, PerGroup(32)),
    "zero points": IntxWeightOnlyConfig(torch.int8, PerGroup(32), MappingType.ASYMMETRIC),
    "per channel": Int8WeightOnlyConfig(),
}
FUSED = ["dequantize+linear+bias+gelu", "dequantize+linear+residual"]


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


class Mlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(x)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sizes", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("name", CONFIGS)
def test_products_read_integers(name: str, sizes: tuple[int, int], dtype: torch.dtype) -> None:
    module = Mlp(*sizes).to(dtype)
    quantize_(module, CONFIGS[name])
    inputs = [(torch.randn(2, rows, sizes[0], dtype=dtype),) for rows in ROWS]
    shapes = {"x": {1: Dim("rows", max=64)}}
    # In bfloat16 weights are not rounded to it, as eager's are: sums differ by more than order.
    run(Case(module, inputs, 2 * sizes[1] if dtype is torch.float32 else 8, shapes, FUSED))


def test_activations_may_be_quantized_too() -> None:
    # A single layer: a sum that differs in its last bit may be quantized to the next integer.
    module = nn.Sequential(nn.Linear(*SMALL), nn.ReLU())
    quantize_(module, Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32)))
    inputs = [(torch.randn(2, rows, SMALL[0]),) for rows in ROWS]
    shapes = ({1: Dim("rows", max=64)},)
    run(Case(module, inputs, 2 * SMALL[0], shapes, ["dequantize+linear+bias+relu"]))


class ScaledAfterwards(nn.Module):
    """As many write layers with 8-bit weights by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Buffer(torch.randint(-128, 128, SMALL[::-1], dtype=torch.int8))
        self.scales = nn.Buffer(torch.rand(SMALL[1]))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.w.to(x.dtype)) * self.scales


def test_weights_may_be_cast_and_products_scaled() -> None:
    inputs = [(torch.randn(rows, SMALL[0]),) for rows in ROWS]
    shapes = {"x": {0: Dim("rows", max=64)}}
    run(Case(ScaledAfterwards(), inputs, SMALL[0], shapes, ["dequantize+linear"]))


class OneScale(nn.Module):
    """As the quantizers of pt2e leave weights."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Buffer(torch.randint(-128, 128, SMALL[::-1], dtype=torch.int8))
        self.bias = nn.Parameter(torch.rand(SMALL[1]))

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.ops.quantized_decomposed.dequantize_per_tensor(
            self.w, 0.03, 0, -127, 127, torch.int8
        )
        return F.relu(F.linear(x, weight, self.bias))


def test_one_scale_for_all_weights() -> None:
    inputs = [(torch.randn(rows, SMALL[0]),) for rows in ROWS]
    shapes = {"x": {0: Dim("rows", max=64)}}
    run(Case(OneScale(), inputs, SMALL[0], shapes, ["dequantize+linear+bias+relu"]))


class Product(nn.Module):
    """By weights with scales for each index of dimension `axis`, transposed on the way or not."""

    def __init__(self, axis: int, transposed: bool) -> None:
        super().__init__()
        self.axis, self.transposed = axis, transposed
        sizes = SMALL[::-1] if transposed else SMALL
        self.w = nn.Buffer(torch.randint(-128, 128, sizes, dtype=torch.int8))
        self.scales = nn.Buffer(torch.rand(sizes[axis]))
        self.zero_points = nn.Buffer(torch.randint(-9, 9, (sizes[axis],)))

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.ops.quantized_decomposed.dequantize_per_channel(
            self.w, self.scales, self.zero_points, self.axis, -128, 127, torch.int8
        )
        return F.relu(torch.mm(x, weight.T if self.transposed else weight))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_other_layouts_run_as_written(axis: int, transposed: bool) -> None:
    reads_rows = axis == 0 and transposed
    fused = ["dequantize+linear+relu" if reads_rows else "linear+relu"]
    run(Case(Product(axis, transposed), [(torch.randn(7, SMALL[0]),)], SMALL[0], fused=fused))


class Shared(nn.Module):
    """Weights that several products read, and the caller, too."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Buffer(torch.randint(-128, 128, SMALL[::-1], dtype=torch.int8))
        self.scales = nn.Buffer(torch.rand(SMALL[1], SMALL[0] // 32))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weight = torch.ops.quantized_decomposed.dequantize_per_channel_group(
            self.w, self.scales, None, -128, 127, torch.int8, 32, torch.float32
        )
        product = F.linear(x, weight) + F.linear(x + 1, weight)
        return product, F.embedding(torch.tensor([3, 0]), weight)


def test_weights_may_be_shared() -> None:
    runs = run(Case(Shared(), [(torch.randn(7, SMALL[0]),)], SMALL[0]))
    assert sum(name.startswith("dequantize+linear") for name in runs.names) == 2, runs.lines
