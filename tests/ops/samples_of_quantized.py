"""Arguments for the operators on quantized tensors. The dtype of a row is that of the floats, or of
the integers where a row is named so."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.samples import FLOATS, Maker, row

QUANTIZED = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32)
HALVES_TOO = (torch.float32, torch.float16, torch.bfloat16)
NAMESPACE = "quantized_decomposed::"


def bounds(dtype: torch.dtype) -> tuple[int, int]:
    info = torch.iinfo(dtype)
    return info.min, info.max


def zero_of(dtype: torch.dtype) -> int:
    return 3 if dtype.is_signed else 7


def rows(dtypes: tuple[torch.dtype, ...], **makes: Any) -> None:
    for name, make in makes.items():
        row(NAMESPACE + name.replace("__", "."), dtypes, make)


def images(m: Maker) -> list[torch.Tensor]:
    """Also beyond the range that scales of an eighth leave to eight bits."""
    return [m(), m(0, 3), m(3, 700), m(2, 3, 4, 5, low=-60, high=60), m.last(2, 3, 4, 5)]


def scale(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


def whole(n: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.arange(n, dtype=dtype) - n // 2


def quantize_per_tensor(m: Maker) -> list[list[Any]]:
    return [
        [x, s, zero_of(q), *bounds(q), q]
        for x in images(m)
        for q in QUANTIZED
        for s in (0.125, 0.1)
    ]


def as_tensors(make: Any, *, limits: bool = False) -> Any:
    """Scale and zero point, and the limits if asked, as tensors."""

    def made(m: Maker) -> list[list[Any]]:
        calls = []
        for x, s, zero, low, high, *more in make(m):
            ends = [torch.tensor(low), torch.tensor(high)] if limits else [low, high]
            calls.append([x, scale(s), torch.tensor([zero]), *ends, *more])
        return calls

    return made


def integers(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    low, high = bounds(dtype)
    random = torch.Generator().manual_seed(seed)
    low, high = max(low, -(1 << 20)), min(high, 1 << 20)
    return torch.randint(low, high + 1, shape, generator=random).to(dtype)


def dequantize_per_tensor(m: Maker) -> list[list[Any]]:
    # Eager computes in the result's type: halves hold no wider integers.
    held = QUANTIZED if m.dtype == torch.float32 else (torch.int8, torch.uint8)
    images = [integers(q, *s) for q in held for s in [(), (0, 2), (3, 700), (2, 3, 4)]]
    images.append(integers(torch.int8, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last))
    return [[x, 0.1, zero_of(x.dtype), *bounds(x.dtype), x.dtype, m.dtype] for x in images]


def channels(m: Maker) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]]:
    """Tensors with scales and zero points along an axis."""
    made = []
    for x, axis in [(m(3, 700), 0), (m(3, 700), 1), (m(2, 3, 4, 5), 1), (m.last(2, 3, 4, 5), 1)]:
        n = x.shape[axis]
        for dtype in (torch.float32, torch.float64):
            made.append((x, (torch.arange(n, dtype=dtype) + 1) / 16, whole(n), axis))
    return made


def limited(zeros: torch.Tensor, q: torch.dtype) -> torch.Tensor:
    return zeros.clamp(*bounds(q))


def quantize_per_channel(m: Maker) -> list[list[Any]]:
    return [
        [x, s, limited(z, q), axis, *bounds(q), q]
        for x, s, z, axis in channels(m)
        for q in (torch.int8, torch.uint8, torch.int16)
    ]


def dequantize_per_channel(m: Maker) -> list[list[Any]]:
    made = []
    for x, s, z, axis in channels(m):
        for q in (torch.int8, torch.uint8, torch.int32):
            values = integers(q, *x.shape)
            if x.dim() == 4 and not x.is_contiguous():
                values = values.contiguous(memory_format=torch.channels_last)
            made += [[values, s, zp, axis, *bounds(q), q, m.dtype] for zp in (z, None)]
    return made


def tokens(m: Maker) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    made = []
    for x in [m(5, 700), m(2, 3, 8), m(4)]:
        lead = (*x.shape[:-1], 1)
        n = torch.Size(lead).numel()
        scales = ((torch.arange(n, dtype=torch.float64) + 1) / 16).reshape(lead)
        made += [(x, s, whole(n).reshape(lead)) for s in (scales, scales.float())]
    return made


def group_parameters(rows: int, groups: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = rows * groups
    return ((torch.arange(n) + 1) / 16).reshape(rows, groups), whole(n, torch.int32).reshape(
        rows, groups
    )


def embedding(bits: int, *, dtype: bool) -> Any:
    def made(m: Maker) -> list[list[Any]]:
        packed = {8: torch.int8, 4: torch.uint8, 2: torch.uint8}[bits]
        table = integers(packed, 6, 64)
        width = 64 * 8 // bits
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        indices = [m.long(4, high=6), m.long(2, 3, high=6).int(), m.long(high=6)]
        parameters = [group_parameters(6, 1), group_parameters(6, 2), group_parameters(6, width)]
        parameters.append((parameters[0][0].flatten(), parameters[0][1].flatten()))
        # The result has the type of the scales, unless it is given.
        return [
            [table, s if dtype else s.to(m.dtype), z, low, high, i, *([m.dtype] * dtype)]
            for s, zeros in parameters
            for z in (None, zeros)
            for i in indices
        ]

    return made


def mixed(*, linear: bool) -> Any:
    def made(m: Maker) -> list[list[Any]]:
        weight = integers(torch.int8, 33, 64)
        parameters = [group_parameters(33, 1)] + [group_parameters(33, 4)] * linear
        parameters[0] = parameters[0][0].flatten(), parameters[0][1].flatten()
        inputs = [m(n, 64 if linear else 33) for n in (1, 7)]
        return [
            [x, weight, s.to(m.dtype) / 64, z, *([None] * linear)]
            for x in inputs
            for s, zeros in parameters
            for z in (None, zeros)
        ]

    return made


def quantized_add(m: Maker) -> list[list[Any]]:
    made = []
    for q in (torch.int8, torch.uint8, torch.int16):
        a, b = integers(q, 3, 700), integers(q, 3, 700, seed=1)
        for x, y in [(a, b), (a, b[0]), (a[:, :1].contiguous(), b[0])]:
            low, high = bounds(q)
            made.append([x, 0.1, 2, low, high, y, 0.05, 1, low, high, 0.2, 3, low, high])
    return made


rows(
    HALVES_TOO,
    quantize_per_tensor__out=quantize_per_tensor,
    quantize_per_tensor__Tensor_out=as_tensors(quantize_per_tensor),
    quantize_per_tensor__tensor2_out=as_tensors(quantize_per_tensor, limits=True),
    dequantize_per_tensor__out=dequantize_per_tensor,
    dequantize_per_tensor__Tensor_out=as_tensors(dequantize_per_tensor),
    dequantize_per_tensor__tensor2_out=as_tensors(dequantize_per_tensor, limits=True),
    quantize_per_channel__out=quantize_per_channel,
    dequantize_per_channel__out=dequantize_per_channel,
    quantize_per_token__out=lambda m: [
        [x, s, z, *bounds(q), q] for x, s, z in tokens(m) for q in (torch.int8, torch.int16)
    ],
    dequantize_per_token__out=lambda m: [
        [integers(q, *x.shape), s, z, *bounds(q), q, m.dtype]
        for x, s, z in tokens(m)
        for q in (torch.int8, torch.uint8)
    ],
    quantize_per_channel_group__out=lambda m: [
        [m(5, 96), *group_parameters(5, 96 // size), -8, 7, torch.int8, size] for size in (32, 96)
    ],
    dequantize_per_channel_group__out=lambda m: [
        [integers(torch.int8, 5, 96), s, z, -8, 7, torch.int8, size, m.dtype]
        for size in (32, 96)
        for s, zeros in [group_parameters(5, 96 // size)]
        for z in (None, zeros)
    ],
    choose_qparams__Tensor_out=lambda m: [
        [x, *bounds(q), 1e-5, q]
        for x in [m(3, 700), m(4, low=1), -m(4, low=1), m(5) * 0]
        for q in (torch.int8, torch.uint8)
    ],
    choose_qparams_symmetric__Tensor_out=lambda m: [
        [x, *bounds(q), 1e-5, q] for x in [m(3, 700), m(5) * 0] for q in (torch.int8, torch.uint8)
    ],
    choose_qparams_per_token__out=lambda m: [[m(5, 700), torch.int8], [m(2, 3, 4), torch.int8]],
    choose_qparams_per_token_asymmetric__out=lambda m: [
        [m(5, 700), torch.int8],
        [m(2, 3, 4, low=1), torch.int8],
        [-m(3, 4, low=1), torch.int8],
        [m(2, 4) * 0, torch.int8],
    ],
    embedding_byte__out=embedding(8, dtype=False),
    embedding_byte__dtype_out=embedding(8, dtype=True),
    embedding_4bit__out=embedding(4, dtype=False),
    embedding_4bit__dtype_out=embedding(4, dtype=True),
    embedding_2bit__out=embedding(2, dtype=False),
    embedding_2bit__dtype_out=embedding(2, dtype=True),
    mixed_mm__out=mixed(linear=False),
    mixed_linear__out=mixed(linear=True),
)
rows(
    (torch.float32,),
    fake_quant_per_channel__out=lambda m: [[x, s, z, a, -128, 127] for x, s, z, a in channels(m)],
    add__out=quantized_add,
)
rows(
    FLOATS,
    convert_element_type__no_fuse_out=lambda m: [[m(3, 4), torch.int32], [m(3), torch.float16]],
)
