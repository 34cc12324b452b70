"""The models of the cases of `xnnpack_cases`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Lambda(nn.Module):
    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__()
        self.f = f

    def forward(self, *args: Tensor) -> Any:
        return self.f(*args)


class Block(nn.Module):
    """A transformer block whose length is dynamic."""

    def __init__(self, width: int = 32, heads: int = 4, gelu: str = "none") -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu = gelu

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate=self.gelu))


def conv(i: int, o: int, k: int, stride: int = 1, groups: int = 1, act: bool = True) -> list:
    layers = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return [*layers, nn.ReLU6()] if act else layers


class Inverted(nn.Module):
    def __init__(self, i: int, o: int, stride: int, expand: int) -> None:
        super().__init__()
        h = i * expand
        self.skip = stride == 1 and i == o
        self.body = nn.Sequential(
            *conv(i, h, 1), *conv(h, h, 3, stride, groups=h), *conv(h, o, 1, act=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.skip else self.body(x)


class Recurrent(nn.Module):
    """Recurrent layers between linear ones."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(8, 12), nn.Linear(10, 5)
        self.lstm = nn.LSTM(12, 7, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(14, 10, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (_, cells) = self.lstm(self.inner(x).relu())
        y, _ = self.gru(y)
        return self.head(y), cells


class Residual(nn.Module):
    def __init__(self, i: int, o: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
            nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o),
        )  # fmt: skip
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
        self.straight = stride == 1 and i == o

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + (x if self.straight else self.down(x)))


class Pooled(nn.Module):
    def __init__(self, body: nn.Module, channels: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean([2, 3], keepdim=True).flatten(1))


def mobile() -> nn.Module:
    body = nn.Sequential(
        *conv(3, 8, 3, 2), Inverted(8, 8, 1, 2), Inverted(8, 12, 2, 3), Inverted(12, 12, 1, 3)
    )
    return Pooled(body, 12)


def resnet() -> nn.Module:
    body = nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2),
    )  # fmt: skip
    return Pooled(body, 16)


def mlp(width: int = 64) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 96), nn.ReLU(), nn.Linear(96, width), nn.Tanh())


def layer() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 6), nn.ReLU())


class RowBias(nn.Module):
    """A bias with one row."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(8, 5))
        self.bias = nn.Parameter(torch.randn(1, 5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weights)


# To a part of the range of int8; most of the numbers of the test lie beyond it.
_QUANTIZATION = (0.12, 3, -100, 90, torch.int8)


def quantized(x: Tensor) -> Tensor:
    return torch.ops.quantized_decomposed.quantize_per_tensor(x, *_QUANTIZATION)


def dequantized(x: Tensor) -> Tensor:
    return torch.ops.quantized_decomposed.dequantize_per_tensor(x, *_QUANTIZATION)


class Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.25, -1), v)


def unary(x: Tensor) -> tuple[Tensor, ...]:
    p = x.abs() + 0.25
    return (
        -x, x * x, x.pow(2), x.pow(3), p.pow(0.5), p.pow(-0.5), p.sqrt(), p.rsqrt(), x.exp(),
        p.log(), x.sigmoid(), x.tanh(),
        F.gelu(x), F.hardswish(x), F.leaky_relu(x, 0.2), x.clamp(-0.5, 0.75), x.floor(),
        x.ceil(), x.sin(), x.cos(), F.relu6(x), F.hardtanh(x, -0.3, 0.3),
        p.reciprocal(), p,
    )  # fmt: skip


def binary(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    return (
        x + y, x - y, x * y, x / (y.abs() + 0.5), torch.minimum(x, y), torch.maximum(x, z),
        F.relu(x + z), F.hardtanh(x * y, -0.5, 0.5), x * 2.0, z + x[:, :, :1],
    )  # fmt: skip


def moved(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (
        x.permute(0, 2, 3, 1), x.permute(3, 1, 0, 2), x.reshape(2, -1), x[:, 1:3, :, 2:5].clone(),
        F.pad(x, (1, 2, 0, 3, 1, 0), value=1.5), torch.cat([x, y], 1), torch.cat([x, y, x], 2),
        torch.cat([x, y, x, y], 3), torch.cat([x, y, x, y, x], 0),
        torch.cat([x, y, x, y, x, y, x], -1), x.unsqueeze(-1)[..., 0], torch.softmax(x, -1),
    )  # fmt: skip


def pools(x: Tensor) -> tuple[Tensor, ...]:
    values, indices = x.max(3, keepdim=True)
    return (
        F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, (3, 2), (2, 1), (1, 0)),
        F.max_pool2d(x, 3, 2, ceil_mode=True), F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2),
        F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), x.mean((2, 3), keepdim=True),
        x.mean((-1, 2)),
        x.amax(2, keepdim=True), values, indices, x.max(2, keepdim=True).values,
        F.interpolate(x, size=(15, 17), mode="bilinear", align_corners=False),
        F.interpolate(x, size=(13, 5), mode="bilinear", align_corners=True),
    )  # fmt: skip


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Conv2d(4, 6, 3), nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0)),
            nn.Conv2d(4, 8, 3, groups=2, padding=1), nn.Conv2d(4, 4, 3, groups=4, padding=1),
            nn.Conv2d(4, 8, 5, 2, 2, groups=4), nn.Conv2d(4, 6, 3, dilation=2, bias=False),
            nn.Conv2d(4, 6, 1), nn.ConvTranspose2d(4, 6, 3, 2, 1, 1),
            nn.ConvTranspose2d(4, 6, 2, 2), nn.ConvTranspose2d(4, 6, 3, 1, groups=2),
        ])  # fmt: skip

    def forward(self, x: Tensor) -> list[Tensor]:
        return [F.relu(layer(x)) for layer in self.layers]


class Prelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 6, 3), nn.PReLU(6)
        self.norm = nn.BatchNorm2d(3)
        with torch.no_grad():
            self.act.weight.copy_(torch.linspace(-0.5, 0.5, 6))

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.conv(self.norm(x)))


class Audio(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 8, 5, 2, 2), nn.Conv1d(8, 8, 3, groups=8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.b(F.relu(self.a(x))))


class Signals(nn.Module):
    """Layers of values of rank 3, whose batch norms do and do not follow a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm1d(4), nn.Conv1d(4, 6, 3, padding=1)
        self.act, self.rise = nn.PReLU(6), nn.ConvTranspose1d(6, 6, 4, 2, 1)
        self.last = nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.act(self.conv(self.norm(x)))
        return self.last(x), self.last(self.rise(x))


def parts(x: Tensor) -> tuple[Tensor, ...]:
    a, b, c = x.split([2, 1, 5], 2)
    return (
        x[:, 1:], x[:, :, 2:5], x[:, :, -3:], x[:, 0], x[:, :, 1], x.unsqueeze(1), a, b * 2, c + b,
        x.reshape(-1, 8), x.view(x.shape[0], x.shape[1], 2, 4), torch.cat([x, x[:, :1]], 1),
    )  # fmt: skip


def given_weights(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    return F.relu(x @ y), F.linear(x, z), F.linear(x, z, y[0, :5])


class Matrices(nn.Module):
    """Rows times as many constant matrices, of different magnitudes."""

    def __init__(self) -> None:
        super().__init__()
        sizes = torch.tensor([1.0, 5.0, 0.2]).view(3, 1, 1)
        self.first = nn.Parameter(torch.randn(3, 32, 20) * sizes)
        self.last = nn.Parameter(torch.randn(3, 20, 7) * sizes)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(torch.bmm(x, self.first)) @ self.last


class StaticOps(nn.Module):
    """What static quantization annotates beside convolutions and linears."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 8, 1)
        self.c = nn.Conv2d(16, 6, 3, groups=2)
        self.t = nn.ConvTranspose2d(6, 4, 2, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        a, b = F.relu(self.a(x)), self.b(x)
        y = torch.cat([a + b, F.relu(a * b)], 1)
        y = F.hardtanh(self.c(F.max_pool2d(y, 2)), -1.0, 1.0)
        z = self.t(F.avg_pool2d(y, 2))
        return z, z.mean((2, 3))


class SqueezeExcite(nn.Module):
    """MobileNetV3's block."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.own = nn.Conv2d(8, 24, 1), nn.Conv2d(24, 24, 5, 1, 2, groups=24)
        self.less, self.more, self.down = (
            nn.Conv2d(24, 8, 1), nn.Conv2d(8, 24, 1), nn.Conv2d(24, 8, 1)
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.own(F.hardswish(self.up(x))))
        weights = torch.sigmoid(self.more(F.relu(self.less(y.mean((2, 3), keepdim=True)))))
        return x + self.down(y * weights)


class Inception(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.three = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 6, 3, padding=1)
        self.row, self.column = nn.Conv2d(8, 4, (1, 5), padding=(0, 2)), nn.Conv2d(4, 4, (5, 1))
        self.pooled = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        tall = F.pad(self.row(x), (0, 0, 2, 2))
        parts = (self.one(x), self.three(x), self.column(tall))
        return F.relu(torch.cat([*parts, self.pooled(F.max_pool2d(x, 3, 1, 1))], 1))


class UNet(nn.Module):
    """Down, up by resizing and by a transposed convolution, each joined to what was before."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, padding=1)
        self.c, self.up = nn.Conv2d(12, 12, 3, padding=1), nn.ConvTranspose2d(12, 8, 2, 2)
        self.d, self.e = nn.Conv2d(24, 12, 3, padding=1), nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        c = F.relu(self.c(F.max_pool2d(b, 2)))
        c = F.interpolate(c, size=b.shape[2:], mode="bilinear", align_corners=False)
        return self.e(torch.cat([self.up(F.relu(self.d(torch.cat([b, c], 1)))), a], 1))


class Dense(nn.Module):
    """Each layer reads all before it."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(6 + 4 * i) for i in range(3)])
        self.layers = nn.ModuleList([nn.Conv2d(6 + 4 * i, 4, 3, padding=1) for i in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = torch.cat([x, layer(F.relu(norm(x)))], 1)
        return F.avg_pool2d(x, 2)


class ConvNext(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.own(x).permute(0, 2, 3, 1))
        return x + self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)


class Patches(nn.Module):
    """An image as a sequence, through a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.block, self.head = nn.Conv2d(3, 32, 4, 4), Block(), nn.Linear(32, 5)
        self.place = nn.Parameter(torch.randn(1, 16, 32) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.cut(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.block(y).mean(1))


class Rotary(nn.Module):
    """A block with root mean square norms, rotary places, shared keys and a gated MLP."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.gain = heads, nn.Parameter(torch.ones(2, width))
        size = width // heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(width, n, bias=False) for n in (width, size, size, width)
        )
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)
        angles = torch.outer(torch.arange(32.0), 10.0 ** -torch.arange(0, 2, 4 / size))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, 1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, 1))

    def _norm(self, x: Tensor, i: int) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.gain[i]

    def _turn(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        t = x.shape[2]
        return x * self.cos[:t] + torch.cat([-b, a], -1) * self.sin[:t]

    def forward(self, x: Tensor) -> Tensor:
        n, t, c = x.shape
        y = self._norm(x, 0)
        q = self.q(y).view(n, t, self.heads, c // self.heads).transpose(1, 2)
        k, v = (f(y).view(n, t, 1, c // self.heads).transpose(1, 2) for f in (self.k, self.v))
        k, v = (z.expand(n, self.heads, t, c // self.heads) for z in (self._turn(k), v))
        y = F.scaled_dot_product_attention(self._turn(q), k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, t, c))
        y = self._norm(x, 1)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))
