"""A dozen small models, each there for one thing an exporter or a runtime can get wrong.

This file needs torch only, so that another exporter's environment can load it by path.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Inputs:
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def flat(self) -> list[Any]:
        """What a runtime takes: positional values, then keyword values, containers opened."""
        return torch.utils._pytree.tree_leaves((self.args, self.kwargs))


@dataclass
class Method:
    """One method: `example` is exported; `more` are run after it, in order, on one instance."""

    module: nn.Module
    example: Inputs
    roundings: int  # rounded operations on the longest path, one per term of a sum
    dynamic_shapes: Any = None
    more: list[Inputs] = field(default_factory=list)
    initial_state: list[str] = field(default_factory=list)  # buffers whose first value matters

    def expected(self) -> list[tuple[Inputs, list[Any]]]:
        """Eager results, flattened, of a fresh copy of the module."""
        module = copy.deepcopy(self.module)
        with torch.no_grad():
            return [
                (i, torch.utils._pytree.tree_leaves(module(*i.args, **i.kwargs)))
                for i in [self.example, *self.more]
            ]

    def export(self) -> torch.export.ExportedProgram:
        with torch.no_grad():
            return torch.export.export(
                self.module,
                self.example.args,
                self.example.kwargs or None,
                dynamic_shapes=self.dynamic_shapes,
            )


def tolerance(roundings: int, expected: Tensor) -> tuple[float, float]:
    """(rtol, atol) between two evaluations that round differently.

    A sum of n terms, each below `scale`, errs by at most n * eps * scale to first order (Higham,
    "Accuracy and Stability of Numerical Algorithms", 4.2); two evaluations differ by twice that.
    """
    if not expected.is_floating_point() or expected.numel() == 0:
        return 0.0, 0.0
    step = 2 * roundings * torch.finfo(expected.dtype).eps
    return step, step * float(expected.detach().abs().max())


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(12, 32)
        self.down = nn.Linear(32, 5)

    def forward(self, x: Tensor) -> Tensor:  # [b, 12] -> [b, 5]
        return F.softmax(self.down(F.relu(self.up(x))), dim=-1)


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8, bias=False)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:  # [n, 3, h, w] -> [n, 4]
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = F.hardtanh(self.depthwise(x), 0.0, 6.0)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: (x.cos() - 1) * 2, (x,))


class MapRows(nn.Module):
    def forward(self, rows: Tensor, y: Tensor) -> Tensor:
        from torch._higher_order_ops.map import map as map_

        return map_(lambda row, y: (row + y).tanh(), rows, y)


class Counter(nn.Module):
    """Counts its calls from 3 and remembers the last input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.full((1,), 3.0))
        self.register_buffer("last", torch.arange(4, dtype=torch.float32))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.count.add_(1)
        difference = x - self.last
        self.last.copy_(x)
        return self.count * x, difference


class Scalars(nn.Module):
    def forward(self, x: Tensor, n: int, flip: bool, scale: float) -> tuple[Tensor, int]:
        y = x.repeat(n, 1) if flip else x - n
        return y * scale, n


class ZeroSize(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        joined = torch.cat((x, y))
        return joined, joined.sum(dim=0), x @ x.t()


class ChannelsLast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.conv(x).to(memory_format=torch.channels_last))


class ManyOutputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.constant = nn.Parameter(torch.arange(3.0))

    def forward(self, x: Tensor) -> dict[str, Any]:
        values, indices = torch.topk(x, 2)
        return {
            "top": (values, indices),
            "nothing": None,
            "mask": x > 0,
            "input": x,
            "constant": self.constant,
            "parts": list(x.split(2, dim=1)),
            "number": 7,
        }


class Keywords(nn.Module):
    def forward(self, x: Tensor, *, scale: Tensor, shift: Tensor | None = None) -> Tensor:
        y = x * scale
        return y if shift is None else y + shift


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.out = nn.Linear(8, 11, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:  # int64 [b, t] -> [b, t, 11]
        return self.out(self.embed(tokens).cumsum(dim=1))


class Dtypes(nn.Module):
    def forward(
        self, half: Tensor, brain: Tensor, small: Tensor, mask: Tensor, big: Tensor
    ) -> tuple[Tensor, ...]:
        return (
            half + half,
            brain * 2,
            torch.bitwise_and(small, 7),
            torch.logical_not(mask),
            torch.where(mask, big, -big),
            (big // 3).to(torch.int32),
            small.to(torch.float64) / 3,
        )


def _nanogpt() -> ModuleType:
    path = ROOT / "examples" / "nanogpt" / "model.py"
    spec = importlib.util.spec_from_file_location("nanogpt_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanogpt_model"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _normal(*shape: int) -> Tensor:
    return torch.randn(*shape)


def _mlp() -> dict[str, Method]:
    batch = Dim("batch", max=16)
    more = [Inputs((_normal(n, 12),)) for n in (1, 2, 16)]
    example = Inputs((_normal(4, 12),))
    return {"forward": Method(MLP(), example, 12 + 32 + 2 * 5, ({0: batch},), more)}


def _cnn() -> dict[str, Method]:
    module = CNN()
    with torch.no_grad():  # statistics a trained model could have
        module.norm.running_mean.uniform_(-1, 1)
        module.norm.running_var.uniform_(0.5, 2)
    more = [Inputs((torch.zeros(1, 3, 16, 16),)), Inputs((_normal(1, 3, 16, 16) * 100,))]
    steps = 27 + 5 + 9 + 16 + 8
    return {"forward": Method(module.eval(), Inputs((_normal(1, 3, 16, 16),)), steps, None, more)}


def _gpt() -> dict[str, Method]:
    nanogpt = _nanogpt()
    width, layers, block = 32, 2, 24
    config = nanogpt.GPTConfig(block, 61, layers, 4, width)
    model = nanogpt.GPT(config).eval()

    def tokens(n: int) -> Inputs:
        return Inputs((torch.randint(0, 61, (1, n)),))

    steps = layers * (2 * width + width + block + block + width + 5 * width) + 2 * width
    more = [tokens(n) for n in (1, 2, 7, block - 1, block)]
    shapes = ({1: Dim("tokens", max=block)},)
    return {"forward": Method(model, tokens(block), steps, shapes, more)}


def _cond() -> dict[str, Method]:
    return {
        "forward": Method(
            Branch(),
            Inputs((torch.ones(3, 2),)),
            2 * 6,
            None,
            [Inputs((-torch.ones(3, 2),)), Inputs((torch.zeros(3, 2),))],
        )
    }


def _map() -> dict[str, Method]:
    more = [Inputs((_normal(5, 4), _normal(4)))]
    return {"forward": Method(MapRows(), Inputs((_normal(5, 4), _normal(4))), 4, None, more)}


def _counter() -> dict[str, Method]:
    return {
        "forward": Method(
            Counter(),
            Inputs((_normal(4),)),
            2,
            None,
            [Inputs((_normal(4),)) for _ in range(3)],
            ["count", "last"],
        )
    }


def _two_methods() -> dict[str, Method]:
    encode, decode = nn.Linear(10, 5), nn.Linear(5, 10)
    return {
        "encode": Method(encode, Inputs((_normal(1, 10),)), 11, None, [Inputs((_normal(1, 10),))]),
        "decode": Method(decode, Inputs((_normal(1, 5),)), 6),
    }


def _scalars() -> dict[str, Method]:
    return {
        "forward": Method(
            Scalars(),
            Inputs((_normal(2, 3), 2, True, 1.5)),
            2,
            None,
            [Inputs((_normal(2, 3), 2, True, 1.5))],
        )
    }


def _zero_size() -> dict[str, Method]:
    inputs = Inputs((torch.zeros(0, 3), torch.zeros(0, 3)))
    return {"forward": Method(ZeroSize(), inputs, 1, None, [inputs])}


def _channels_last() -> dict[str, Method]:
    def image() -> Inputs:
        return Inputs((_normal(2, 3, 8, 6).to(memory_format=torch.channels_last),))

    module = ChannelsLast().eval()
    return {"forward": Method(module, image(), 27 + 3, None, [image()])}


def _many_outputs() -> dict[str, Method]:
    more = [Inputs((_normal(4, 6),))]
    return {"forward": Method(ManyOutputs(), Inputs((_normal(4, 6),)), 1, None, more)}


def _keywords() -> dict[str, Method]:
    def inputs() -> Inputs:
        return Inputs((_normal(3, 4),), {"scale": _normal(4), "shift": _normal(3, 1)})

    return {"forward": Method(Keywords(), inputs(), 2, None, [inputs()])}


def _tied() -> dict[str, Method]:
    shapes = ({1: Dim("tokens", max=6)},)

    def tokens(n: int) -> Inputs:
        return Inputs((torch.randint(0, 11, (2, n)),))

    more = [tokens(n) for n in (1, 2, 6)]
    return {"forward": Method(Tied(), tokens(4), 6 + 8, shapes, more)}


def _dtypes() -> dict[str, Method]:
    def inputs() -> Inputs:
        return Inputs(
            (
                _normal(3, 4).half(),
                _normal(3, 4).bfloat16(),
                torch.randint(-128, 128, (3, 4), dtype=torch.int8),
                torch.rand(3, 4) > 0.5,
                torch.randint(-(2**62), 2**62, (3, 4)),
            )
        )

    return {"forward": Method(Dtypes(), inputs(), 1, None, [inputs()])}


CASES: dict[str, Callable[[], dict[str, Method]]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "gpt": _gpt,
    "cond": _cond,
    "map": _map,
    "counter": _counter,
    "two_methods": _two_methods,
    "scalars": _scalars,
    "zero_size": _zero_size,
    "channels_last": _channels_last,
    "many_outputs": _many_outputs,
    "keywords": _keywords,
    "tied": _tied,
    "dtypes": _dtypes,
}


def build(name: str) -> dict[str, Method]:
    """The methods of a case, always with the same weights and inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sum(name.encode()))
        return CASES[name]()
