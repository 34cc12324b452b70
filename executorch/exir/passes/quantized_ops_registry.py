"""The `quantized_decomposed` library: what PyTorch defines in it, the out variants that the runtime
has kernels for, and table lookups and products with packed weights.

Importing this module registers the operators. Out variants are schemas only: programs call them.
Their schemas stand in the rows of the kernels' tables, executorch/kernels/quantized/*.cpp. Where
PyTorch defines no operator for an out variant, this module does: with the same arguments but for
the results, and what it computes in eager mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.library import Library, register_fake

from executorch.exir.torch_internals import all_operator_names, define_quantized_operators

# One schema a line, which the build reads from the kernels' tables. They have more than one reader:
# the library that computes them in eager mode is quantized_ops_aot_lib.
_SCHEMAS = Path(__file__).parents[1] / "quantized_schemas.txt"


def _out_variants() -> dict[str, str]:
    """Arguments and results, "(...) -> ...", by name: "add.out"."""
    if not _SCHEMAS.exists():
        raise ImportError(f"{_SCHEMAS} is missing; build the target quantized_schemas")
    named = (line.partition("(") for line in _SCHEMAS.read_text().splitlines())
    return {name: f"({rest}" for name, _, rest in named}


define_quantized_operators()
quantized_decomposed_lib = Library("quantized_decomposed", "FRAGMENT")
_out = _out_variants()
_known = set(all_operator_names())
for _name, _signature in _out.items():
    if f"quantized_decomposed::{_name}" not in _known:
        quantized_decomposed_lib.define(_name + _signature)


def _define(name: str, function: Callable[..., Tensor]) -> None:
    """Define the operator `name`, with or without overload, from its out variant; eager mode and
    fake tensors run `function`."""
    out = _out[f"{name}_out" if "." in name else f"{name}.out"]
    signature = re.sub(r"(, \*)?, Tensor\(a!\) out\) -> Tensor\(a!\)", ") -> Tensor", out)
    quantized_decomposed_lib.define(name + signature)
    quantized_decomposed_lib.impl(name, function, "CompositeExplicitAutograd")
    register_fake(f"quantized_decomposed::{name}", function, lib=quantized_decomposed_lib)


def unpack(packed: Tensor, bits: int) -> Tensor:
    """The values of bytes that hold several: four bits high half first, two bits low pair first;
    both unsigned, less half their range."""
    if bits == 8:
        return packed
    shifts = [4, 0] if bits == 4 else [0, 2, 4, 6]
    parts = [(packed >> shift & (1 << bits) - 1).to(torch.int8) for shift in shifts]
    return torch.stack(parts, -1).flatten(-2) - (1 << bits - 1)


def dequantize_rows(values: Tensor, scales: Tensor, zero_points: Tensor | None) -> Tensor:
    """values [rows, columns]; scales and zero points [rows] or [rows, groups]."""
    grouped = scales.reshape(scales.shape[0], -1, 1)
    x = values.to(torch.float32).reshape(values.shape[0], grouped.shape[1], -1)
    if zero_points is not None:
        x = x - zero_points.reshape(grouped.shape)
    return (x * grouped).reshape(values.shape)


def _embedding(bits: int) -> Callable[..., Tensor]:
    def embedding(
        weight: Tensor,
        scales: Tensor,
        zero_points: Tensor | None,
        quant_min: int,
        quant_max: int,
        indices: Tensor,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        table = dequantize_rows(unpack(weight, bits), scales, zero_points)
        return torch.nn.functional.embedding(indices, table).to(dtype or scales.dtype)

    return embedding


def _mixed_mm(x: Tensor, weight: Tensor, scales: Tensor, zero_points: Tensor | None) -> Tensor:
    return (x.float() @ dequantize_rows(weight, scales, zero_points)).to(x.dtype)


def _mixed_linear(
    x: Tensor,
    weight: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return (x.float() @ dequantize_rows(weight, scales, zero_points).T).to(dtype or x.dtype)


def _add(a: Tensor, *arguments: float) -> Tensor:
    b: Tensor = arguments[4]  # type: ignore[assignment]
    (a_scale, a_zero, *_), (b_scale, b_zero, *_) = arguments[:4], arguments[5:9]
    scale, zero, low, high = arguments[9:]
    total = (a.float() - a_zero) * a_scale + (b.float() - b_zero) * b_scale
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    return quantize(total, scale, zero, low, high, a.dtype)


for _name, _bits in (("embedding_byte", 8), ("embedding_4bit", 4), ("embedding_2bit", 2)):
    _define(_name, _embedding(_bits))
    _define(f"{_name}.dtype", _embedding(_bits))
_define("mixed_mm", _mixed_mm)
_define("mixed_linear", _mixed_linear)
_define("add", _add)
