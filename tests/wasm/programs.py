"""Small programs for the browser, with what eager PyTorch makes of the same inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.nn import functional as F
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge, to_edge_transform_and_lower

EPS = torch.finfo(torch.float32).eps


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).softmax(-1)


class Dtypes(nn.Module):
    """Something of each element type that JavaScript has an array for."""

    def forward(
        self, f: Tensor, d: Tensor, i8: Tensor, u8: Tensor, i32: Tensor, i64: Tensor, b: Tensor
    ) -> tuple[Tensor, ...]:
        flipped = torch.logical_not(b)
        return f * 2, d / 3, i8 + 1, u8 + 1, i32 * 7, i64 * 3_000_000_019, flipped


class Convolutions(nn.Module):
    """A convolution, a depthwise and a pointwise one with norms, and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU6(),
            nn.Conv2d(16, 16, 3, 1, 1, groups=16, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU6(),
            nn.Conv2d(16, 24, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class SmallGPT(nn.Module):
    """One layer; int64 [1, t] to float [1, t, 50]."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 50)

    def forward(self, idx: Tensor) -> Tensor:
        t = idx.shape[1]
        x = self.words(idx) + self.positions(torch.arange(t))
        q, k, v = (
            y.view(1, t, 4, 8).transpose(1, 2) for y in self.qkv(self.norm(x)).split(32, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.out(y.transpose(1, 2).reshape(1, t, 32)))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(x)
        return self.count.clone()


class Scaled(nn.Module):
    def forward(self, x: Tensor, factor: int) -> Tensor:
        return x * factor


@dataclass
class Case:
    """A module and the calls it is tried with, the first of which it is exported with."""

    make: Callable[[], nn.Module]
    calls: Callable[[], list[tuple[Any, ...]]]
    tolerance: float  # relative and absolute
    dynamic_shapes: Callable[[], Any] = lambda: None
    quantize: bool = False
    _module: nn.Module | None = field(default=None, repr=False)

    def module(self) -> nn.Module:
        """The same weights each time, and quantized once."""
        if self._module is None:
            torch.manual_seed(0)
            module = self.make().eval()
            self._module = self._quantized(module) if self.quantize else module
        return self._module

    def _quantized(self, module: nn.Module) -> nn.Module:
        (inputs, *_) = self.calls()
        quantizer = XNNPACKQuantizer().set_global(
            get_symmetric_quantization_config(is_per_channel=True)
        )
        prepared = prepare_pt2e(export(module, inputs).module(), quantizer)
        prepared(*inputs)
        return convert_pt2e(prepared)

    def program(self) -> bytes:
        exported = export(self.module(), self.calls()[0], dynamic_shapes=self.dynamic_shapes())
        if self.quantize:
            edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
        else:
            edge = to_edge(exported)
        return edge.to_executorch().buffer

    def eager(self, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        with torch.no_grad():
            outputs = self.module()(*inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)


def seeded(make: Callable[[], list[tuple[Any, ...]]]) -> Callable[[], list[tuple[Any, ...]]]:
    def calls() -> list[tuple[Any, ...]]:
        torch.manual_seed(1)
        return make()

    return calls


def every_dtype() -> tuple[Tensor, ...]:
    integers = (
        torch.tensor([-128, 0, 126], dtype=torch.int8),
        torch.tensor([0, 128, 254], dtype=torch.uint8),
        torch.tensor([-(2**28), 0, 2**28], dtype=torch.int32),
        torch.tensor([-(2**20), 0, 2**20]),
    )
    return torch.randn(3), torch.randn(3).double(), *integers, torch.tensor([True, False, True])


# Sums of n products of numbers about 1 are off by n roundings; what a rounding of an 8-bit number
# away from eager's moves is one step of the result.
CASES = {
    "dense": Case(
        Dense,
        seeded(lambda: [(torch.randn(n, 4),) for n in (2, 1, 8)]),
        16 * EPS,
        lambda: ({0: Dim("n", max=8)},),
    ),
    "dtypes": Case(Dtypes, seeded(lambda: [every_dtype()]), EPS),
    "convolutions": Case(
        Convolutions, seeded(lambda: [(torch.randn(1, 3, 32, 32),)]), 3 * 9 * 16 * EPS
    ),
    "gpt": Case(
        SmallGPT,
        seeded(lambda: [(torch.randint(0, 50, (1, n)),) for n in (5, 1, 16)]),
        96 * EPS,
        lambda: ({1: Dim("t", max=16)},),
    ),
    "quantized": Case(
        Convolutions, seeded(lambda: [(torch.randn(1, 3, 32, 32),)]), 0.02, quantize=True
    ),
}


def other_programs() -> dict[str, bytes]:
    """Those with a state, or with inputs that are no tensors."""
    calls = {"counter": (Counter(), (torch.ones(1),)), "scaled": (Scaled(), (torch.ones(2), 3))}
    return {
        name: to_edge(export(module, inputs)).to_executorch().buffer
        for name, (module, inputs) in calls.items()
    }
