"""Weights of 4 bits in groups that can be exported: torchao's `Int4Tensor`, whose own operators run
on some machines only, with an operator that runs everywhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import Library

from executorch.extension.llm.export.exportable_weight import ExportableWeight

_torchao = Library("torchao", "FRAGMENT")
_torchao.define(
    "dequantize_int4_tensor(Tensor qdata, Tensor scale, Tensor zero_point, int group_size, "
    "ScalarType output_dtype=bfloat16) -> Tensor"
)


def _dequantize(
    qdata: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    group_size: int,
    output_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    # The first step gives two numbers of a byte, so that a program stores the bytes.
    shifts = torch.arange(2, dtype=torch.uint8, device=qdata.device) * 4
    q = (qdata.unsqueeze(2) >> shifts & 15).reshape(qdata.size(0), -1, group_size).float()
    scales, zeros = (t.t().float().unsqueeze(2) for t in (scale, zero_point))
    return ((q - zeros) * scales).reshape(qdata.size(0), -1).to(output_dtype)


def packed_in_bytes(q: Tensor) -> Tensor:
    """Numbers of 4 bits, uint8 [..., k], in k / 2 bytes, as `ExportableInt4Tensor` has them."""
    return q[..., ::2] | q[..., 1::2] << 4


_torchao.impl("dequantize_int4_tensor", _dequantize, "CompositeImplicitAutograd")


class ExportableInt4Tensor(ExportableWeight):
    """scale * (q - zero_point), q from 0 to 15.

    qdata       [n, k / 2] of uint8: an even column in the low bits of a byte, the next in the high
    scale       [k / group_size, n], and so is zero_point
    """

    tensor_data_names = ["qdata", "scale", "zero_point"]
    tensor_attribute_names = ["group_size", "orig_dtype"]

    def __new__(
        cls,
        qdata: Tensor,
        scale: Tensor,
        zero_point: Tensor,
        group_size: int,
        orig_dtype: torch.dtype,
    ) -> Any:
        n, k = qdata.shape[0], qdata.shape[-1] * 2
        if group_size < 1 or k % group_size:
            raise ValueError(f"groups of {group_size} do not divide {k} columns")
        for name, part in {"scale": scale, "zero_point": zero_point}.items():
            if part.shape != (k // group_size, n):
                raise ValueError(
                    f"{name} [{k // group_size}, {n}] is expected, not {list(part.shape)}"
                )
        self = cls.made(cls, n, k, orig_dtype, qdata.device)
        self.qdata, self.scale, self.zero_point = qdata, scale, zero_point
        self.group_size, self.orig_dtype = group_size, orig_dtype
        return self

    @classmethod
    def from_int4_tensor(cls, w: Any) -> ExportableInt4Tensor:
        """Of a torchao `Int4Tensor`, with its parts."""
        return cls(w.qdata, w.scale, w.zero_point, int(w.block_size[-1]), w.dtype)  # type: ignore

    @classmethod
    def from_intx_unpacked_to_int8_tensor(cls, w: Any) -> ExportableInt4Tensor:
        """Of a torchao `IntxUnpackedToInt8Tensor` of 4 bits, half its size. ValueError for one of
        other bits, or that quantizes activations."""
        if w.target_dtype != torch.int4:
            raise ValueError(f"a tensor of torch.int4 is expected, not of {w.target_dtype}")
        if w.activation_quantization is not None:
            raise ValueError("activations are quantized, which these weights cannot say")
        q = (w.qdata.to(torch.int16) + 8).to(torch.uint8)
        zero_point = (w.zero_point.to(w.scale.dtype) + 8).t().contiguous()
        group_size = int(w.block_size[-1])
        return cls(packed_in_bytes(q), w.scale.t().contiguous(), zero_point, group_size, w.dtype)  # type: ignore

    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        dtype = output_dtype or self.orig_dtype
        parts = (self.qdata, self.scale, self.zero_point)
        return torch.ops.torchao.dequantize_int4_tensor(  # type: ignore[no-any-return]
            *parts, self.group_size, output_dtype=dtype
        )

    def with_parts(self, device: torch.device, dtype: torch.dtype) -> ExportableWeight:
        qdata = self.qdata.to(device)
        scale, zero_point = (t.to(device, dtype) for t in (self.scale, self.zero_point))
        return ExportableInt4Tensor(qdata, scale, zero_point, self.group_size, dtype)  # type: ignore
