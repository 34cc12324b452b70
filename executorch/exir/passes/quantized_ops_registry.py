"""The `quantized_decomposed` library: what PyTorch defines in it, the out variants that the runtime
has kernels for, and table lookups and products with packed weights.

Importing this module registers the operators. Out variants are schemas only: programs call them.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.library import Library, register_fake

from executorch.exir.torch_internals import all_operator_names, define_quantized_operators

_EMBEDDING = (
    "Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
    "int weight_quant_max, Tensor indices"
)
_MIXED = "Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points"
_ADD = ", ".join(
    f"{tensor}float {name}_scale, int {name}_zero_point, int {name}_quant_min, int {name}_quant_max"
    for name, tensor in [("a", "Tensor a, "), ("b", "Tensor b, "), ("out", "")]
)

# One schema a line, for the library that computes them in eager mode, too (quantized_ops_aot_lib).
_OUT_VARIANTS = Path(__file__).with_name("quantized_out_variants.txt").read_text().splitlines()

define_quantized_operators()
quantized_decomposed_lib = Library("quantized_decomposed", "FRAGMENT")
_known = set(all_operator_names())
for _schema in _OUT_VARIANTS:
    if f"quantized_decomposed::{_schema.partition('(')[0]}" not in _known:
        quantized_decomposed_lib.define(_schema)


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


def _define_embedding(name: str, bits: int) -> None:
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

    for schema in (
        f"{name}({_EMBEDDING})",
        f"{name}.dtype({_EMBEDDING}, *, ScalarType? dtype=None)",
    ):
        quantized_decomposed_lib.define(f"{schema} -> Tensor")
        overload = schema.partition("(")[0]
        quantized_decomposed_lib.impl(overload, embedding, "CompositeExplicitAutograd")
        register_fake(f"quantized_decomposed::{overload}", embedding, lib=quantized_decomposed_lib)


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
    return (torch.round(total * (1.0 / scale)) + zero).clamp(low, high).to(a.dtype)


for _name, _bits in (("embedding_byte", 8), ("embedding_4bit", 4), ("embedding_2bit", 2)):
    _define_embedding(_name, _bits)
for _schema, _function in (
    (f"mixed_mm({_MIXED}) -> Tensor", _mixed_mm),
    (f"mixed_linear({_MIXED}, ScalarType? dtype=None) -> Tensor", _mixed_linear),
    (f"add({_ADD}) -> Tensor qc", _add),
):
    quantized_decomposed_lib.define(_schema)
    _name = _schema.partition("(")[0]
    quantized_decomposed_lib.impl(_name, _function, "CompositeExplicitAutograd")
    register_fake(f"quantized_decomposed::{_name}", _function, lib=quantized_decomposed_lib)
