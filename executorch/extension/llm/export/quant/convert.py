"""Quantized weights in another representation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torchao.utils import TorchAOBaseTensor

from executorch.extension.llm.export.exportable_weight import ExportableWeight
from executorch.extension.llm.export.gguf import ExportableGGUFTensor
from executorch.extension.llm.export.int4 import ExportableInt4Tensor

# (name, weight) -> the converted weight.
Convert = Callable[[str, Tensor], Tensor]


def identity(fqn: str, w: Tensor) -> Tensor:
    return w


def to_exportable(fqn: str, w: Tensor) -> Tensor:
    """Convert a torchao `Int4Tensor` to a tensor that can be exported; others stay as they are."""
    from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor

    return ExportableInt4Tensor.from_int4_tensor(w) if isinstance(w, Int4Tensor) else w


def to_default(fqn: str, w: Tensor) -> Tensor:
    """As `to_exportable`, and pack weights of 4 bits that are stored as one byte each into two per
    byte. ValueError for such weights with quantized activations."""
    from torchao.quantization import IntxUnpackedToInt8Tensor

    if isinstance(w, IntxUnpackedToInt8Tensor) and w.target_dtype == torch.int4:
        return ExportableInt4Tensor.from_intx_unpacked_to_int8_tensor(w)
    return to_exportable(fqn, w)


def maybe_cast(value: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Cast `value` to `dtype` if both are float types and the cast dequantizes nothing."""
    from torchao.quantization import IntxUnpackedToInt8Tensor

    if dtype is None or value.dtype == dtype or not value.dtype.is_floating_point:
        return value
    castable = (ExportableWeight, IntxUnpackedToInt8Tensor)
    plain = type(value) in (Tensor, torch.nn.Parameter)
    return value.to(dtype) if plain or isinstance(value, castable) else value


def fuse_along_output(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate weights along their rows, as those of query, key and value projections. A single
    weight is returned as it is. TypeError for weights of several kinds; ValueError for no weights,
    and for different group sizes or dtypes."""
    tensors = list(tensors)
    if not tensors:
        raise ValueError("fuse_along_output: no tensors")
    first = tensors[0]
    if len(tensors) == 1:
        return first
    kinds = {type(t) if isinstance(t, TorchAOBaseTensor) else Tensor for t in tensors}
    if len(kinds) > 1:
        raise TypeError(f"fuse_along_output: {sorted(kind.__name__ for kind in kinds)}")
    return _fused(tensors) if isinstance(first, TorchAOBaseTensor) else torch.cat(tensors)


def _fused(tensors: list[Any]) -> Tensor:
    from torchao.quantization import IntxUnpackedToInt8Tensor

    first = tensors[0]
    # For each kind of tensor: part -> the dimension that its rows are in.
    rows_of: dict[type, dict[str, int]] = {
        ExportableInt4Tensor: {"qdata": 0, "scale": 1, "zero_point": 1},
        ExportableGGUFTensor: {"raw": 0},
        IntxUnpackedToInt8Tensor: {"qdata": 0, "scale": 0, "zero_point": 0},
    }
    if type(first) not in rows_of:
        raise TypeError(f"fuse_along_output: a {type(first).__name__} cannot be fused")
    attributes = [getattr(first, name) for name in first.tensor_attribute_names]
    for other in tensors[1:]:
        for name, value in zip(first.tensor_attribute_names, attributes, strict=True):
            if getattr(other, name) != value:
                raise ValueError(
                    f"fuse_along_output: {name} is {value!r} and {getattr(other, name)!r}"
                )
    dims = rows_of[type(first)]
    parts = [
        torch.cat([getattr(t, name) for t in tensors], dims[name])
        for name in first.tensor_data_names
    ]
    return type(first)(*parts, *attributes)  # type: ignore[no-any-return]
