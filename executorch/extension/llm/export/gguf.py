"""Checkpoints of GGUF files, the format of llama.cpp.

    for name, weight in iter_gguf("model.gguf"): ...     weights as they are stored
    state_dict = load_gguf("model.gguf", torch.float32)  all of them in floats

Quantized weights are `ExportableGGUFTensor`s: the file's bytes, which become numbers where a layer
reads them. Of programs they become part as `to_exportable_int4_tensor()`, or as
`to_intx_unpacked_to_int8_tensor()`, which the runtime multiplies in integers.

A block of a row has a scale of 16 bits, d. Blocks of q4_k and q5_k have another, dmin, and a scale
and a minimum of 6 bits each for every 32 numbers, those of q6_k a scale of 8 bits for every 16:

    q4_0, q8_0   d q                 32 numbers of 4 or 8 bits
    q4_k, q5_k   d scale q - dmin minimum      256 of 4 or 5 bits
    q6_k         d scale q           256 of 6 bits
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.library import Library, register_fake

from executorch.exir.torch_internals import FakeTensor
from executorch.extension.llm.export.exportable_weight import ExportableWeight
from executorch.extension.llm.export.gguf_file import TYPES, GGUFFile
from executorch.extension.llm.export.int4 import ExportableInt4Tensor, packed_in_bytes

QK_K = 256
Q4_K_GROUP_SIZE = Q5_K_GROUP_SIZE = 32
Q6_K_GROUP_SIZE = 16
_FLOATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_BLOCKS = {name: (n, size) for name, n, size in TYPES.values() if name not in _FLOATS}
_Q4_K_BLOCK_BYTES, _Q5_K_BLOCK_BYTES, _Q6_K_BLOCK_BYTES = (
    _BLOCKS[name][1] for name in ("q4_k", "q5_k", "q6_k")
)
# Type -> bits, and numbers that share a scale.
_FORMS = {"q4_0": (4, 32), "q8_0": (8, 32), "q4_k": (4, 32), "q5_k": (5, 32), "q6_k": (6, 16)}

_torchao = Library("torchao", "FRAGMENT")
_torchao.define(
    "dequantize_gguf(Tensor weight, str ggml_type, ScalarType output_dtype=bfloat16) -> Tensor"
)


def _half(blocks: Tensor, at: int) -> Tensor:
    """The number of 16 bits at a byte of each block, in floats."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(data: Tensor, run: int) -> Tensor:
    """The low bits of each `run` bytes, then their high bits."""
    pairs = data.reshape(data.size(0), -1, 1, run)
    return torch.cat([pairs & 15, pairs >> 4], 2).reshape(data.size(0), -1)


def _small_scales(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Scales and minima, 6 bits each, of 8 groups in 12 bytes."""
    a, b, c = packed.reshape(-1, 3, 4).unbind(1)
    scales = torch.cat([a & 63, c & 15 | a >> 6 << 4], 1)
    minima = torch.cat([b & 63, c >> 4 | b >> 6 << 4], 1)
    return scales.float(), minima.float()


def _sixes(low: Tensor, high: Tensor) -> Tensor:
    """256 numbers of 6 bits: 4 in 128 bytes, 2 in 64, halves of the block one after the other."""
    halves = []
    for i in range(2):
        lows = _nibbles(low[:, 64 * i : 64 * i + 64], 64).reshape(-1, 4, 32)
        tops = high[:, None, 32 * i : 32 * i + 32]
        shifts = torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]
        halves.append((lows | (tops >> shifts & 3) << 4).reshape(-1, 128))
    return torch.cat(halves, 1)


def _fields(raw: Tensor, ggml_type: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """What the bytes [n, row_bytes] mean: scale * q - minimum. q [n, k] is int8 around 0, or where
    there are minima [n, groups] uint8 from 0 on."""
    n = raw.size(0)
    block, block_bytes = _BLOCKS[ggml_type]
    blocks = raw.reshape(-1, block_bytes)
    k = raw.size(1) // block_bytes * block
    if ggml_type in ("q4_0", "q8_0"):
        q = _nibbles(blocks[:, 2:], 16).to(torch.int8) - 8 if ggml_type == "q4_0" else None
        q = blocks[:, 2:].contiguous().view(torch.int8) if q is None else q
        return q.reshape(n, k), _half(blocks, 0).reshape(n, -1), None
    if ggml_type == "q6_k":
        q = _sixes(blocks[:, :128], blocks[:, 128:192]).to(torch.int8) - 32
        scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
        return q.reshape(n, k), (_half(blocks, 208) * scales).reshape(n, -1), None
    q = _nibbles(blocks[:, -128:], 32)
    if ggml_type == "q5_k":
        tops = torch.stack([blocks[:, 16:48] >> g & 1 for g in range(8)], 1)
        q = q | tops.reshape(-1, block) << 4
    scales, minima = _small_scales(blocks[:, 4:16])
    scales, minima = _half(blocks, 0) * scales, _half(blocks, 2) * minima
    return q.reshape(n, k), scales.reshape(n, -1), minima.reshape(n, -1)


def _check(raw: Tensor, ggml_type: str) -> int:
    """The columns that the bytes are."""
    if ggml_type not in _BLOCKS:
        raise NotImplementedError(f"GGUF type {ggml_type!r}; known are {', '.join(_BLOCKS)}")
    if raw.dim() != 2 or raw.dtype != torch.uint8:
        raise ValueError(f"bytes [n, row] of uint8 are expected, not {list(raw.shape)} {raw.dtype}")
    block, block_bytes = _BLOCKS[ggml_type]
    if raw.size(1) % block_bytes:
        raise ValueError(f"rows of {raw.size(1)} bytes are no blocks of {block_bytes}, {ggml_type}")
    return raw.size(1) // block_bytes * block


def _dequantize(
    weight: Tensor, ggml_type: str, output_dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    k = _check(weight, ggml_type)
    q, scales, minima = _fields(weight, ggml_type)
    groups = q.reshape(q.size(0), -1, _FORMS[ggml_type][1]).float() * scales.unsqueeze(2)
    if minima is not None:
        groups = groups - minima.unsqueeze(2)
    return groups.reshape(q.size(0), k).to(output_dtype)


def _dequantize_fake(
    weight: Tensor, ggml_type: str, output_dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    return weight.new_empty((weight.size(0), _check(weight, ggml_type)), dtype=output_dtype)


_torchao.impl("dequantize_gguf", _dequantize, "CompositeExplicitAutograd")
register_fake("torchao::dequantize_gguf", _dequantize_fake, lib=_torchao)


def _max_uniform_group_size(
    eff_scale: Tensor, eff_min: Tensor, base_group_size: int, max_group_size: int
) -> tuple[int, Tensor, Tensor]:
    """The largest group size, base_group_size times a power of 2, up to `max_group_size`, for which
    groups that become one have equal scales and minima in every row, and those of the new groups.
    Of fake tensors nothing is known: the base."""
    if isinstance(eff_scale, FakeTensor):
        return base_group_size, eff_scale, eff_min
    n_groups, factor = eff_scale.size(1), 1
    while base_group_size * factor * 2 <= max_group_size and n_groups % (factor * 2) == 0:
        factor *= 2
    while factor > 1:
        runs = [t.reshape(t.size(0), -1, factor) for t in (eff_scale, eff_min)]
        if all(bool((t == t[:, :, :1]).all()) for t in runs):
            break
        factor //= 2
    scales, minima = (t[:, ::factor].contiguous() for t in (eff_scale, eff_min))
    return base_group_size * factor, scales, minima


class ExportableGGUFTensor(ExportableWeight):
    """Quantized weights [n, k] as their bytes [n, row_bytes] in a file: `raw`, of `ggml_type`, such
    as "q4_k"."""

    tensor_data_names = ["raw"]
    tensor_attribute_names = ["ggml_type", "orig_dtype"]

    def __new__(cls, raw: Tensor, ggml_type: str, orig_dtype: torch.dtype) -> Any:
        self = cls.made(cls, raw.shape[0], _check(raw, ggml_type), orig_dtype, raw.device)
        self.raw, self.ggml_type, self.orig_dtype = raw, ggml_type, orig_dtype
        return self

    @classmethod
    def from_raw(
        cls, raw: Tensor, ggml_type: str, orig_dtype: torch.dtype = torch.bfloat16
    ) -> ExportableGGUFTensor:
        return cls(raw.contiguous(), ggml_type, orig_dtype)  # type: ignore

    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        dtype = output_dtype or self.orig_dtype
        return torch.ops.torchao.dequantize_gguf(  # type: ignore[no-any-return]
            self.raw, self.ggml_type, dtype
        )

    def with_parts(self, device: torch.device, dtype: torch.dtype) -> ExportableWeight:
        return ExportableGGUFTensor(self.raw.to(device), self.ggml_type, dtype)  # type: ignore

    def to_exportable_int4_tensor(self, output_dtype: torch.dtype | None = None) -> Tensor:
        """The same of 4 bits with scales of `output_dtype`; NotImplementedError for more bits."""
        bits, group_size = _FORMS[self.ggml_type]
        if bits != 4:
            raise NotImplementedError(f"weights of 4 bits are expected, not of {self.ggml_type}")
        dtype = output_dtype or self.orig_dtype
        q, scale, minimum = _fields(self.raw, self.ggml_type)
        if minimum is None:
            q, zero = (q + 8).to(torch.uint8), torch.full_like(scale, 8)
        else:
            q, scale, zero = _with_zero_points(q, scale, minimum)
        parts = (packed_in_bytes(q), *(t.t().contiguous().to(dtype) for t in (scale, zero)))
        return ExportableInt4Tensor(*parts, group_size, dtype)  # type: ignore

    def to_intx_unpacked_to_int8_tensor(
        self, max_group_size: int | None = None, scale_dtype: torch.dtype | None = None
    ) -> Tensor:
        """The same as torchao's tensor of a byte for each number, with scales of `scale_dtype`, by
        default those of the file. `max_group_size`: groups of equal scales become one up to it."""
        from torchao.quantization import IntxUnpackedToInt8Tensor

        dtype = scale_dtype or torch.float16
        bits, group_size = _FORMS[self.ggml_type]
        q, scale, minimum = _fields(self.raw, self.ggml_type)
        least = torch.zeros_like(scale) if minimum is None else minimum
        if max_group_size is not None:
            group_size, scale, least = _max_uniform_group_size(
                scale, least, group_size, max_group_size
            )
        if minimum is None:
            zero_point = torch.zeros_like(scale, dtype=torch.int8)
        else:
            middle = 1 << (bits - 1)
            q, scale, zero = _with_zero_points(q, scale, least)
            q = q.to(torch.int8) - middle
            zero_point = (zero - middle).to(dtype)
        return IntxUnpackedToInt8Tensor(  # type: ignore[no-any-return]
            qdata=q,
            scale=scale.to(dtype),
            zero_point=zero_point,
            target_dtype={4: torch.int4, 5: torch.int5}.get(bits, torch.int8),
            block_size=(1, group_size),
            dtype=dtype,
            activation_quantization=None,
        )


def _with_zero_points(q: Tensor, scale: Tensor, minimum: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """scale * q - minimum as scale * (q - zero). Where the scale is 0: minimum * (0 - 1)."""
    flat = scale == 0
    zero = torch.where(flat, 1.0, minimum / scale)
    groups = q.reshape(*scale.shape, -1).masked_fill(flat.unsqueeze(2), 0)
    return groups.reshape(q.shape), torch.where(flat, minimum, scale), zero


def iter_gguf(path: str) -> Iterator[tuple[str, ExportableGGUFTensor | Tensor]]:
    """Name and value of each tensor of the file, in torch's order of dimensions: plain tensors of
    its floats, `ExportableGGUFTensor`s of quantized matrices; one is in memory at a time.
    ValueError for what is no such file, and for quantized tensors that are no matrices."""
    for place, data in GGUFFile(path):
        raw = _copy(data)
        if place.type in _FLOATS:
            yield place.name, raw.view(_FLOATS[place.type]).reshape(place.shape)
        elif len(place.shape) != 2:
            raise ValueError(
                f"{path}: tensor {place.name!r} of {place.type} has the shape {list(place.shape)}; "
                "load_gguf reads it"
            )
        else:
            rows = raw.reshape(place.shape[0], -1) if place.shape[0] else raw.reshape(0, 0)
            yield place.name, ExportableGGUFTensor.from_raw(rows, place.type)


def load_gguf(path: str, dtype: torch.dtype = torch.bfloat16) -> dict[str, Tensor]:
    """All tensors of the file by name, of any shape, in `dtype`."""
    found = {}
    for place, data in GGUFFile(path):
        raw = _copy(data)
        if place.type in _FLOATS:
            value = raw.view(_FLOATS[place.type]).to(dtype)
        else:
            row_bytes = _BLOCKS[place.type][1]
            value = _dequantize(raw.reshape(-1, row_bytes), place.type, dtype)
        found[place.name] = value.reshape(place.shape)
    return found


def _copy(data: memoryview) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0).byte()
