"""Weights of linear layers in the bytes that `llama::quantized_moe_ffn` reads, those of torchao's
`_pack_8bit_act_4bit_weight` and `_pack_8bit_act_8bit_weight` for every machine. `packed_linear.h`
says what they are."""

from __future__ import annotations

import torch
from torch import Tensor

_HEADER_BYTES = 64
_ROWS, _COLUMNS = 8, 16


def pack_linear(qvals: Tensor, scales: Tensor, group_size: int, bits: int) -> Tensor:
    """Bytes of the weights qvals * scales, a scale for each `group_size` of a row.

    qvals   [n, k] of int8, within `bits` (4 or 8) signed bits
    scales  n * k / group_size floats, row after row
    """
    n, k = qvals.shape
    _check(n, k, group_size, bits)
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if qvals.numel() and not least <= int(qvals.min()) <= int(qvals.max()) <= most:
        raise ValueError(f"integers from {least} to {most} are expected")
    missing = -n % _ROWS
    q = torch.nn.functional.pad(qvals.to(torch.int16), (0, 0, 0, missing))
    s = torch.nn.functional.pad(scales.reshape(n, -1).float(), (0, 0, 0, missing))
    groups = q.reshape(-1, _ROWS, k // group_size, group_size)
    sums = groups.sum(3, dtype=torch.int32).transpose(1, 2)
    chunks = groups.reshape(*groups.shape[:3], group_size // _COLUMNS, 2, _COLUMNS // 2)
    values = chunks.permute(0, 2, 3, 4, 1, 5)  # block, group, chunk, half, row, column
    if bits == 4:
        low, high = (values + 8).reshape(*values.shape[:2], -1, 2, 16).unbind(3)
        values = low | high << 4
    data = values.reshape(*values.shape[:2], -1).to(torch.int64).bitwise_and(255).to(torch.uint8)
    scale_bytes = s.reshape(-1, _ROWS, k // group_size).transpose(1, 2).contiguous()
    parts = [data, *(t.contiguous().view(torch.uint8) for t in (scale_bytes, sums))]
    return torch.cat([_header(bits), torch.cat(parts, 2).flatten()])


def unpack_linear(packed: Tensor, n: int, k: int, group_size: int, bits: int) -> Tensor:
    """The weights [n, k] in floats. ValueError for what `pack_linear` does not write."""
    _check(n, k, group_size, bits)
    blocks, n_groups = -(-n // _ROWS), k // group_size
    data_bytes = _ROWS * group_size * bits // 8
    size = blocks * n_groups * (data_bytes + 8 * _ROWS)
    if packed.numel() < _HEADER_BYTES + size or not torch.equal(packed[:32], _header(bits)[:32]):
        raise ValueError(
            f"{packed.numel()} bytes that are no weights [{n}, {k}] of {bits} bits, packed for "
            "every machine"
        )
    body = packed[_HEADER_BYTES : _HEADER_BYTES + size].reshape(blocks, n_groups, -1)
    data = body[..., :data_bytes].to(torch.int16)
    if bits == 4:
        data = data.reshape(blocks, n_groups, -1, 1, 16)
        values = torch.cat([data & 15, data >> 4], 3) - 8
    else:
        values = body[..., :data_bytes].view(torch.int8)
    values = values.reshape(blocks, n_groups, -1, 2, _ROWS, _COLUMNS // 2)
    q = values.permute(0, 4, 1, 2, 3, 5).reshape(-1, n_groups, group_size)
    scales = body[..., data_bytes : data_bytes + 4 * _ROWS].contiguous().view(torch.float32)
    return (q * scales.transpose(1, 2).reshape(-1, n_groups, 1)).reshape(-1, k)[:n]


def _header(bits: int) -> Tensor:
    fields = [6712, 1, bits, 0, 0, _ROWS, _COLUMNS, 2, *[0] * 8]
    return torch.tensor(fields, dtype=torch.int32).view(torch.uint8)


def _check(n: int, k: int, group_size: int, bits: int) -> None:
    fits = n > 0 and k > 0 and group_size > 0 and group_size % _COLUMNS == k % group_size == 0
    if not fits or bits not in (4, 8):
        raise ValueError(
            f"weights [{n}, {k}] of {bits} bits in groups of {group_size}: 4 or 8 bits and groups "
            "of a multiple of 16 that divides the columns are expected"
        )
