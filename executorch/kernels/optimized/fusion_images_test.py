"""Models of images run fused, and give what they give unfused and in eager."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from executorch.kernels.optimized.fusion_test import HEADS, WIDTH, Case, run


@pytest.fixture(autouse=True)
def fixed_seed() -> Iterator[None]:
    torch.manual_seed(0)
    yield


class Vit(nn.Module):
    """Queries, keys and values unbound from one projection; fixed sizes; queries scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        y = ((q * (c // HEADS) ** -0.5) @ k.transpose(-2, -1)).softmax(dim=-1) @ v
        return x + self.proj(y.transpose(1, 2).reshape(b, n, c))


def test_vit() -> None:
    inputs = [(torch.randn(2, 3, 16, 16),) for _ in range(2)]
    runs = run(Case(Vit(), inputs, 3 * 16 + 8 * WIDTH))
    assert runs.names == ["attention", "linear+bias+residual"], runs.lines


class Convolutions(nn.Module):
    """An inverted residual of MobileNet and a basic block of ResNet."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()

        def conv(i: int, o: int, k: int, groups: int = 1) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv2d(i, o, k, padding=k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)
            )

        self.widen, self.depthwise, self.narrow = (
            conv(6, 12, 1),
            conv(12, 12, 3, 12),
            conv(12, 6, 1),
        )
        self.first, self.second = conv(6, 6, 3), conv(6, 6, 3)
        self.act = act
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.narrow(self.act(self.depthwise(self.act(self.widen(x)))))
        return F.relu(x + self.second(F.relu(self.first(x))))


@pytest.mark.parametrize(
    ("act", "name"),
    [(nn.ReLU6(), "+clamp"), (nn.SiLU(), "+silu"), (nn.Hardswish(), "+hardswish")],
    ids=lambda value: type(value).__name__,
)
def test_convolutions(act: nn.Module, name: str) -> None:
    case = Case(
        Convolutions(act),
        [(torch.randn(n, 6, 9, 9),) for n in (2, 1, 3)],
        16 * 6 * 9 * 5,
        ({0: Dim("n", max=4)},),
    )
    runs = run(case)
    found = [n.replace("+norm", "") for n in runs.names]
    wanted = [name, name, "+residual", "+clamp", "+residual+clamp"]
    relu = ["convolution" + w for w in wanted]
    assert [n.replace("+relu", "+clamp") for n in found] == relu, runs.lines


@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_with_wide_planes_between_them_run_in_bands(stride: int) -> None:
    class InvertedResidual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.widen, self.narrow = nn.Conv2d(8, 96, 1), nn.Conv2d(96, 8, 1)
            self.depthwise = nn.Conv2d(96, 96, 3, stride, 1, groups=96)

        def forward(self, x: Tensor) -> Tensor:
            y = self.narrow(F.relu6(self.depthwise(F.relu6(self.widen(x)))))
            return F.relu(x + y if stride == 1 else y)

    inputs = [(torch.randn(n, 8, 66, 70),) for n in (2, 1, 3)]
    case = Case(InvertedResidual(), inputs, 8 * 9 * 96, ({0: Dim("n", max=4)},))
    runs = run(case)
    end = "convolution+residual+relu" if stride == 1 else "convolution+relu"
    assert runs.names == ["convolution+clamp+convolution+clamp+" + end], runs.lines
