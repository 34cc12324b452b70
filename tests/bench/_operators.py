"""Operators alone: those that compute and those that memory bounds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from _cases import Case
from torch import Tensor, nn
from torch.nn import functional as F


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def alone(name: str, build: Callable[[], nn.Module], *sizes: tuple[int, ...]) -> Case:
    program = name.replace(" ", "_").replace("/", "_")
    return Case(name, program, build, sizes, plans_inputs=False)


def function(name: str, f: Callable[..., Tensor], *sizes: tuple[int, ...]) -> Case:
    shape = " ".join("x".join(map(str, s)) for s in sizes)
    return alone(f"{name} {shape}", lambda: Call(f), *sizes)


def linear(m: int, k: int, n: int) -> Case:
    return alone(f"linear {m}x{k} to {n}", lambda: nn.Linear(k, n), (1, m, k))


def conv(c_in: int, c_out: int, size: int, kernel: int, stride: int = 1, groups: int = 1) -> Case:
    kind = "depthwise" if groups > 1 else "conv"
    name = f"{kind} {kernel}x{kernel}/{stride} {c_in} to {c_out} at {size}x{size}"
    build = lambda: nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups)  # noqa: E731
    return alone(name, build, (1, c_in, size, size))


def layer(name: str, build: Callable[[], nn.Module], *size: int) -> Case:
    return alone(f"{name} at {'x'.join(map(str, size[2:]))}", build, size)


def attention(heads: int, tokens: int, causal: bool) -> Case:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    name = f"attention{' causal' if causal else ''}"
    return function(name, attend, *((1, heads, tokens, 64),) * 3)


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """The areas that each two boxes have in common; corners of boxes are (x, y, x, y)."""
    corner = torch.maximum(a[:, None, :2], b[None, :, :2])
    return (torch.minimum(a[:, None, 2:], b[None, :, 2:]) - corner).clamp(min=0).prod(-1)


LARGE = (4096, 4096)  # beyond the caches
KERNELS = (
    function("softmax", lambda x: F.softmax(x, -1), LARGE),
    function("softmax", lambda x: F.softmax(x, -1), (12, 128, 128)),
    function("layer_norm", lambda x: F.layer_norm(x, x.shape[-1:]), LARGE),
    alone("layer_norm 1x512x768", lambda: nn.LayerNorm(768), (1, 512, 768)),
    function("gelu", F.gelu, LARGE),
    function("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), LARGE),
    function("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), (1, 512, 3072)),
    function("silu", F.silu, LARGE),
    function("elu", F.elu, (64, 4096)),
    function("softplus", F.softplus, (64, 4096)),
    function("sin", torch.sin, (64, 4096)),
    function("sinh", torch.sinh, (64, 4096)),
    function("log1p", lambda x: torch.log1p(x.abs()), (64, 4096)),
    function("atan2", torch.atan2, (64, 4096), (64, 4096)),
    function("power", lambda x: x.abs() ** 2.4, (64, 4096)),
    function("floor_divide", torch.floor_divide, (64, 4096), (64, 4096)),
    function("remainder", torch.remainder, (64, 4096), (64, 4096)),
    function("softshrink", F.softshrink, (64, 4096)),
    function("add", torch.add, LARGE, LARGE),
    function("add", torch.add, LARGE, (4096,)),
    function("mul", torch.mul, LARGE, LARGE),
    function("permute", lambda x: x.t().contiguous(), LARGE),
    function("permute", lambda x: x.permute(0, 2, 1, 3).contiguous(), (16, 512, 16, 128)),
    function("permute", lambda x: x.permute(0, 2, 3, 1).contiguous(), (1, 128, 362, 362)),
    function("mean", lambda x: x.mean(-1), LARGE),
    function("sum of columns", lambda x: x.sum(0), LARGE),
    function("max over channels", lambda x: x.max(1)[0], (1, 21, 256, 256)),
    function("argmax over channels", lambda x: x.argmax(1), (1, 21, 256, 256)),
    function("overlap of boxes", overlap, (300, 4), (300, 4)),
    function("cat", lambda x, y: torch.cat((x, y), 1), LARGE, LARGE),
    alone("batch_norm 1x64x512x512", lambda: nn.BatchNorm2d(64), (1, 64, 512, 512)),
    alone("max_pool 3x3/2 1x64x112x112", lambda: nn.MaxPool2d(3, 2, 1), (1, 64, 112, 112)),
    alone("max_pool1d 3 1x64x4096", lambda: nn.MaxPool1d(3), (1, 64, 4096)),
    function("upsample nearest", lambda x: F.interpolate(x, scale_factor=2), (1, 64, 56, 56)),
    function("pad reflect", lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), (1, 64, 56, 56)),
    function(
        "upsample trilinear",
        lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"),
        (1, 8, 16, 32, 32),
    ),
    function("unfold", lambda x: F.unfold(x, 3, padding=1), (1, 16, 56, 56)),
    function("median", lambda x: x.median(-1)[0], (64, 4096)),
    *(linear(m, k, n) for m in (1, 16, 128, 1000) for k, n in ((768, 2304), (3072, 768))),
    linear(128, 768, 3072),
    linear(1, 768, 50257),
    function("matrix times vector", torch.mv, (1024, 1024), (1024,)),
    function("mm", torch.mm, (1024, 1024), (1024, 1024)),
    function("bmm", torch.bmm, (12, 512, 64), (12, 64, 512)),
    attention(12, 1, False),
    attention(12, 128, True),
    attention(12, 1000, True),
    attention(6, 197, False),
    layer("conv1d 7 64 to 64", lambda: nn.Conv1d(64, 64, 7, padding=3), 1, 64, 8192),
    layer("conv3d 3x3x3 32 to 64", lambda: nn.Conv3d(32, 64, 3, padding=1), 1, 32, 8, 28, 28),
    layer("transposed 1d 8/4 384 to 192", lambda: nn.ConvTranspose1d(384, 192, 8, 4), 1, 384, 84),
    layer(
        "transposed 2x2/2 256 to 128", lambda: nn.ConvTranspose2d(256, 128, 2, 2), 1, 256, 32, 32
    ),
    layer("transposed 4x4/2 64 to 32", lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1), 1, 64, 56, 56),
    conv(3, 64, 224, 7, 2),
    conv(64, 64, 56, 3),
    conv(128, 128, 28, 3),
    conv(256, 256, 14, 3),
    conv(512, 512, 7, 3),
    conv(64, 128, 56, 1, 2),
    conv(3, 384, 224, 16, 16),
    conv(3, 32, 224, 3, 2),
    conv(16, 96, 112, 1),
    conv(96, 24, 56, 1),
    conv(160, 960, 7, 1),
    conv(320, 1280, 7, 1),
    conv(96, 96, 112, 3, 2, groups=96),
    conv(144, 144, 56, 3, 1, groups=144),
    conv(960, 960, 7, 3, 1, groups=960),
)
