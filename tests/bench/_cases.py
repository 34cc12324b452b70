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
    dtypes: tuple[torch.dtype, ...] = ()  # of each input, where they differ
    high: int = 30000  # integers are below
    positive: bool = False  # floats between 0 and 1, else of a normal distribution
    example: tuple[int, ...] | None = None  # sizes to export with, where dimension 1 may vary
    plans_inputs: bool = True  # by default a program copies its inputs into memory of its own
    # "int8", "int4": linear layers; "int8 weights", "int4 weights": those, but no activations;
    # "static": everything that can be, calibrated
    quantize: str = ""
    moved: int = 0  # bytes that must be moved, where not all of the inputs and the result

    def module(self) -> nn.Module:
        """The same weights wherever it is called."""
        torch.manual_seed(SEED)
        return self.build().eval()

    def inputs(self, exported: bool = False) -> tuple[Tensor, ...]:
        torch.manual_seed(SEED)
        sizes = (self.example,) if exported and self.example else self.sizes
        dtypes = self.dtypes or (self.dtype,) * len(sizes)
        return tuple(self.random(s, t) for s, t in zip(sizes, dtypes, strict=True))

    def random(self, size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        if dtype.is_floating_point:
            return (torch.rand if self.positive else torch.randn)(size).to(dtype)
        return torch.randint(0, 2 if dtype == torch.bool else self.high, size).to(dtype)

    def largest_difference(self, quantization: float = 0) -> float:
        """Relative to the norm of the output: float32 with sums in another order and vectorised
        functions stays below, a format of fewer bits (bfloat16) above. `quantization` is how far
        PyTorch's own quantized module lies from the float one: a side whose roundings are others,
        of as many bits, lies about as far, and one that loses a bit twice as far."""
        if {torch.float16, torch.bfloat16} & {self.dtype, *self.dtypes}:
            return 2e-2
        return 1e-3 + 2 * quantization

    def work(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> dict[str, Any]:
        """Bytes that must be moved and the peak that counts; a quantized table of embeddings or
        bias is not worth counting."""
        if self.moved:
            return {"bytes": self.moved, "peak": "peak"}
        tensors = (*inputs, output)
        if not self.quantize:
            tensors = (*module.state_dict(keep_vars=True).values(), *tensors)
        moved = sum({t.data_ptr(): t.nbytes for t in tensors}.values())
        bits = 4.5 if self.quantize.startswith("int4") else 8  # 16 for 32 weights' scale
        for layer in module.modules() if self.quantize else ():
            if isinstance(layer, (nn.Linear, nn.Conv2d)):
                moved += int(layer.weight.numel() * bits / 8)
        in_floats = not self.quantize or self.quantize.endswith("weights")
        return {"bytes": moved, "peak": "peak" if in_floats else "int8"}

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
    name, sizes = f"gpt2 {tokens} tokens", ((1, tokens),)
    return Case(name, "gpt2", LastLogits, sizes, torch.int64, example=(1, 1024))


IMAGE = ((1, 3, 224, 224),)
MODELS = (
    *(gpt(tokens) for tokens in (1, 16, 128, 512, 1000)),
    Case("mobilenet_v2", "mobilenet_v2", _nets.MobileNetV2, IMAGE),
    Case("resnet18", "resnet18", _nets.ResNet18, IMAGE),
    Case("vit_small", "vit_small", _nets.ViTSmall, IMAGE),
    Case("bert_base 128 tokens", "bert_base", _nets.BertBase, ((1, 128),), torch.int64),
    Case("unet 256x256", "unet", _nets.UNet, ((1, 3, 256, 256),)),
    Case("vocoder 60 frames", "vocoder", _nets.Vocoder, ((1, 80, 60),)),
    Case("recognizer 100 frames", "recognizer", _nets.Recognizer, ((1, 100, 80),)),
)


class SmallGPT(LastLogits):
    """6 layers, 384 wide, a vocabulary of 8192."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        from model import GPT, GPTConfig

        sizes = {"n_layer": 6, "n_head": 6, "n_embd": 384}
        self.gpt = GPT(GPTConfig(block_size=256, vocab_size=8192, **sizes))


# What a page may download.
BROWSER = (
    Case("mlp", "mlp", _nets.MLP, ((1, 784),)),
    *(case for case in MODELS if case.name == "mobilenet_v2"),
    *(
        Case(
            f"small gpt {n} tokens",
            "small_gpt",
            SmallGPT,
            ((1, n),),
            torch.int64,
            high=8192,
            example=(1, 256),
        )
        for n in (1, 16, 128)
    ),
)


def quantized(case: Case, quantize: str) -> Case:
    """The same, in its own program."""
    name, program = f"{case.name} {quantize}", f"{case.program}_{quantize.replace(' ', '_')}"
    return replace(case, name=name, program=program, quantize=quantize)


QUANTIZED = (
    *(
        quantized(gpt(tokens), kind)
        for kind in ("int8", "int4", "int8 weights", "int4 weights")
        for tokens in (1, 128, 512)
    ),
    *(quantized(case, "static") for case in MODELS if case.program in ("mobilenet_v2", "resnet18")),
)
