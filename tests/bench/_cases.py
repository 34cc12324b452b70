"""What is measured: models, and operators alone. Needs torch only, as every side imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import _nets
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "nanogpt"))
SEED = 0


@dataclass(frozen=True)
class Case:
    """One module on one set of inputs. Cases of one `program` share a module and its export."""

    name: str
    program: str
    build: Callable[[], nn.Module]
    sizes: tuple[tuple[int, ...], ...]  # of the inputs
    dtype: torch.dtype = torch.float32  # of all inputs; int64: token numbers
    example: tuple[int, ...] | None = None  # sizes to export with, where dimension 1 may vary
    plans_inputs: bool = True  # by default a program copies its inputs into memory of its own
    quantize: str = (
        ""  # "int8", "int4": linear layers; "static": everything that can be, calibrated
    )

    def module(self) -> nn.Module:
        """The same weights wherever it is called."""
        torch.manual_seed(SEED)
        return self.build().eval()

    def inputs(self, exported: bool = False) -> tuple[Tensor, ...]:
        torch.manual_seed(SEED)
        sizes = (self.example,) if exported and self.example else self.sizes
        if self.dtype == torch.int64:
            return tuple(torch.randint(0, 30000, s) for s in sizes)
        return tuple(torch.randn(s) for s in sizes)

    def largest_difference(self) -> float:
        """Relative to the norm of the output: float32 with sums in another order and vectorised
        functions stays below, a format of fewer bits (bfloat16) above. What is quantized is judged
        by text or images; here only nonsense is told apart."""
        return 0.5 if self.quantize else 1e-3

    def work(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> dict[str, Any]:
        """Bytes that must be moved and the peak that counts; a quantized table of embeddings or
        bias is not worth counting."""
        tensors = (*inputs, output)
        if not self.quantize:
            tensors = (*module.state_dict(keep_vars=True).values(), *tensors)
        moved = sum({t.data_ptr(): t.nbytes for t in tensors}.values())
        bits = 4.5 if self.quantize == "int4" else 8  # 16 for 32 weights' scale
        for layer in module.modules() if self.quantize else ():
            if isinstance(layer, (nn.Linear, nn.Conv2d)):
                moved += int(layer.weight.numel() * bits / 8)
        return {"bytes": moved, "peak": "int8" if self.quantize else "peak"}

    def dynamic_shapes(self) -> tuple[dict[int, Any], ...] | None:
        return ({1: torch.export.Dim("tokens", max=self.example[1])},) if self.example else None


class LastLogits(nn.Module):
    """A GPT of examples/nanogpt as a function of tokens alone."""

    def __init__(self) -> None:
        super().__init__()
        from model import GPT, GPTConfig

        self.gpt = GPT(GPTConfig())

    def forward(self, idx: Tensor) -> Tensor:
        return self.gpt(idx)[0]


def gpt(tokens: int) -> Case:
    dtype, example = torch.int64, (1, 1024)
    return Case(f"gpt2 {tokens} tokens", "gpt2", LastLogits, ((1, tokens),), dtype, example)


IMAGE = ((1, 3, 224, 224),)
MODELS = (
    *(gpt(tokens) for tokens in (1, 16, 128, 512, 1000)),
    Case("mobilenet_v2", "mobilenet_v2", _nets.MobileNetV2, IMAGE),
    Case("resnet18", "resnet18", _nets.ResNet18, IMAGE),
    Case("vit_small", "vit_small", _nets.ViTSmall, IMAGE),
    Case("bert_base 128 tokens", "bert_base", _nets.BertBase, ((1, 128),), torch.int64),
)


def quantized(case: Case, quantize: str) -> Case:
    """The same, in its own program."""
    name, program = f"{case.name} {quantize}", f"{case.program}_{quantize}"
    return replace(case, name=name, program=program, quantize=quantize)


QUANTIZED = (
    *(quantized(gpt(t), q) for q in ("int8", "int4") for t in (1, 128, 512)),
    *(quantized(case, "static") for case in MODELS if case.program in ("mobilenet_v2", "resnet18")),
)


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


def attention(heads: int, tokens: int, causal: bool) -> Case:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    name = f"attention{' causal' if causal else ''}"
    return function(name, attend, *((1, heads, tokens, 64),) * 3)


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
    function("add", torch.add, LARGE, LARGE),
    function("add", torch.add, LARGE, (4096,)),
    function("mul", torch.mul, LARGE, LARGE),
    function("permute", lambda x: x.t().contiguous(), LARGE),
    function("permute", lambda x: x.permute(0, 2, 1, 3).contiguous(), (16, 512, 16, 128)),
    function("permute", lambda x: x.permute(0, 2, 3, 1).contiguous(), (1, 128, 362, 362)),
    function("mean", lambda x: x.mean(-1), LARGE),
    function("sum of columns", lambda x: x.sum(0), LARGE),
    function("cat", lambda x, y: torch.cat((x, y), 1), LARGE, LARGE),
    alone("batch_norm 1x64x512x512", lambda: nn.BatchNorm2d(64), (1, 64, 512, 512)),
    alone("max_pool 3x3/2 1x64x112x112", lambda: nn.MaxPool2d(3, 2, 1), (1, 64, 112, 112)),
    *(linear(m, k, n) for m in (1, 16, 128, 1000) for k, n in ((768, 2304), (3072, 768))),
    linear(128, 768, 3072),
    linear(1, 768, 50257),
    function("mm", torch.mm, (1024, 1024), (1024, 1024)),
    function("bmm", torch.bmm, (12, 512, 64), (12, 64, 512)),
    attention(12, 1, False),
    attention(12, 128, True),
    attention(12, 1000, True),
    attention(6, 197, False),
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
CASES = {case.name: case for case in (*MODELS, *QUANTIZED, *KERNELS)}
