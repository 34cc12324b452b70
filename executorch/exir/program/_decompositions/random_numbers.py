"""Random numbers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from executorch.exir.program._decompositions._rule import rule

_aten = torch.ops.aten


@rule(_aten.uniform.default)
def uniform(
    self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None, **named: Any
) -> Tensor:
    low = named.get("from", from_)  # the schema's name, which Python keeps for itself
    return torch.rand_like(self) * (to - low) + low


@rule(_aten.geometric.default)
def geometric(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    u = 1 - torch.rand_like(self, dtype=_float_of(self))  # in (0, 1]
    return torch.clamp_min(torch.ceil(torch.log(u) / math.log1p(-p)), 1).to(self.dtype)


@rule(_aten.normal.Tensor_float, _aten.normal.Tensor_Tensor)
def normal_around(mean: Tensor, std: Any = 1, *, generator: Any = None) -> Tensor:
    shape = torch.broadcast_shapes(mean.shape, std.shape) if isinstance(std, Tensor) else mean.shape
    return torch.randn(shape, dtype=mean.dtype, device=mean.device) * std + mean


@rule(_aten.normal.float_Tensor)
def normal_spread(mean: float, std: Tensor, *, generator: Any = None) -> Tensor:
    return torch.randn_like(std) * std + mean


@rule(_aten.normal.float_float)
def normal_of_size(
    mean: float, std: float, size: list[int], *, generator: Any = None, **options: Any
) -> Tensor:
    return torch.randn(size, **options) * std + mean


@rule(_aten.rrelu_with_noise_functional.default)
def rrelu(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> tuple[Tensor, Tensor]:
    if training:
        slope = torch.rand_like(self) * (upper - lower) + lower
        noise = torch.where(self <= 0, slope, 1.0)
        return self * noise, noise
    return torch.nn.functional.leaky_relu(self, (lower + upper) / 2), noise


@rule(_aten.alpha_dropout.default)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropped elements get the value that SELU saturates at; mean and variance stay."""
    if not train or p == 0:
        return input.clone()
    if p == 1:
        return torch.zeros_like(input)
    saturated = 1.7580993408473766
    scale = 1 / math.sqrt((saturated * saturated * p + 1) * (1 - p))
    kept = torch.ge(torch.rand_like(input), p)
    shift = saturated * scale * p
    return torch.where(kept, input, -saturated) * scale + shift


@rule(_aten.bernoulli.p)
def bernoulli_p(self: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    return torch.lt(torch.rand_like(self, dtype=_float_of(self)), p).to(self.dtype)


@rule(_aten.bernoulli.Tensor)
def bernoulli_tensor(self: Tensor, p: Tensor, *, generator: Any = None) -> Tensor:
    return torch.lt(torch.rand_like(self, dtype=p.dtype), p).to(self.dtype)


@rule(_aten.normal_functional.default)
def normal_functional(
    self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None
) -> Tensor:
    return torch.randn_like(self) * std + mean


@rule(_aten.multinomial.default)
def multinomial(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """With replacement by inverting the running total; without, the largest of p / Exponential(1)
    are a draw (an exponential race)."""
    if replacement:
        total = torch.cumsum(self.to(torch.float64), -1)
        shape = [*self.shape[:-1], num_samples]
        at = torch.rand(shape, dtype=total.dtype, device=self.device) * total[..., -1:]
        # The last class with a part of its own, where rounding lands on the total itself.
        return torch.minimum(
            torch.searchsorted(total, at, right=True),
            torch.searchsorted(total, total[..., -1:]),
        )
    p = self.to(_float_of(self))
    # In (0, 1]: a zero would make every class infinitely likely.
    race = -torch.log(1 - torch.rand_like(p))
    if num_samples == 1:
        return torch.argmax(p / race, -1, keepdim=True)
    return torch.topk(p / race, num_samples)[1]


@rule(_aten.randint_like.default)
def randint_like(self: Tensor, high: int, **options: Any) -> Tensor:
    return randint_like_low(self, 0, high, **options)


@rule(_aten.randint_like.low_dtype)
def randint_like_low(self: Tensor, low: int, high: int, **options: Any) -> Tensor:
    dtype = options.get("dtype") or self.dtype
    return torch.randint(low, high, self.shape, dtype=dtype, device=self.device)


def _float_of(t: Tensor) -> torch.dtype:
    return t.dtype if t.is_floating_point() else torch.get_default_dtype()
