"""Random graphs of elementwise operators, comparisons and choices agree with eager PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import export

from executorch.exir import to_edge
from executorch.extension.pybindings import _C

Function = Callable[..., Tensor]

FLOATS: list[tuple[Function, str]] = [  # with the kinds of their operands: float, Bool
    *((f, "f") for f in (torch.abs, torch.neg, torch.relu, torch.sigmoid, torch.tanh)),
    *((f, "f") for f in (torch.floor, torch.ceil, torch.trunc, torch.round, torch.sign)),
    *((f, "f") for f in (torch.square, nn.functional.leaky_relu, lambda x: 3 / x)),
    *((f, "f") for f in (lambda x: x * 1.5, lambda x: 0.25 - x, lambda x: x.clamp(-1, 1))),
    *((f, "ff") for f in (torch.add, torch.sub, torch.mul, torch.div)),
    *((f, "ff") for f in (torch.maximum, torch.minimum)),
    *((torch.where, "bff") for _ in range(4)),
    (lambda test: test.float(), "b"),
]
BOOLS: list[tuple[Function, str]] = [
    *((f, "ff") for f in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)),
    *((f, "f") for f in (lambda x: x > 0.25, lambda x: x != 1, lambda x: x <= 0)),
    *((f, "bb") for f in (torch.logical_and, torch.bitwise_or, torch.logical_or)),
    (torch.logical_not, "b"),
]


class Graph(nn.Module):
    """A list of calls on the values so far; the last ones are returned."""

    def __init__(self, rng: random.Random, n_floats: int) -> None:
        super().__init__()
        self.calls: list[tuple[Function, list[int]]] = []
        kinds = "f" * n_floats + "b"
        for _ in range(rng.randint(4, 14)):
            kind = rng.choice("ffb")
            function, operands = rng.choice(FLOATS if kind == "f" else BOOLS)
            places = [[i for i, k in enumerate(kinds) if k == operand] for operand in operands]
            self.calls.append((function, [rng.choice(at) for at in places]))
            kinds += kind
        self.n_results = rng.randint(1, 3)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values = list(inputs)
        for function, operands in self.calls:
            values.append(function(*(values[i] for i in operands)))
        return tuple(values[-self.n_results :])


def inputs_of(rng: random.Random, shape: tuple[int, ...], n_floats: int) -> tuple[Tensor, ...]:
    """Numbers of which some are equal, NaN or infinite, and a mask; some are broadcast."""

    def broadcast() -> list[int]:
        return [1 if rng.random() < 0.2 else size for size in shape]

    floats = [torch.randn(broadcast()).mul(4).round().div(4) for _ in range(n_floats)]
    for x in floats:
        for special in (torch.nan, torch.inf):
            if rng.random() < 0.5:
                x.view(-1)[rng.randrange(x.numel())] = special
    return *floats, torch.rand(broadcast()) > 0.5


@pytest.mark.parametrize("shape", [(3, 40), (70, 3), (5, 7, 2), (600,), (2, 1, 9, 4), (1,)])
def test_random_graphs(shape: tuple[int, ...]) -> None:
    n_fused = 0
    for seed in range(8):
        rng = random.Random(f"{shape} {seed}")
        torch.manual_seed(seed)
        n_floats = rng.randint(2, 4)
        module, inputs = Graph(rng, n_floats), inputs_of(rng, shape, n_floats)
        buffer = to_edge(export(module, inputs)).to_executorch().buffer
        method: Any = _C._load_program_from_buffer(buffer).load_method("forward")
        n_fused += ": elementwise <- " in _C._last_fusion()
        expected = list(module(*inputs))
        found = [x.clone() for x in method.call(inputs)]
        torch.testing.assert_close(found, expected, rtol=2e-6, atol=1e-6, equal_nan=True)
    assert n_fused > 0
