"""The bytes of constants, each stored once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor

_SAMPLE_BYTES = 64


def tensor_bytes(tensor: torch.Tensor, dim_order: Sequence[int]) -> memoryview:
    """The tensor's elements in `dim_order`, outermost first.

    Borrowed from the tensor, and keeping it alive, if its memory has that order; else a copy.
    ValueError for tensors without data.
    """
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        raise ValueError("a fake tensor has no data")
    plain = tensor.detach().cpu().resolve_neg().resolve_conj()
    ordered = plain.permute(*dim_order).contiguous() if plain.dim() > 1 else plain.contiguous()
    if ordered.numel() == 0:
        return memoryview(b"")
    return memoryview(ordered.reshape(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]


class DataPool:
    """Distinct byte strings in the order they were first added; index 0 is reserved and empty.

    Equal bytes get one index. Memory seen before is recognised by its address; otherwise bytes are
    compared only with those of equal size and equal samples, so that nothing is hashed in full.
    """

    def __init__(self) -> None:
        self.entries: list[memoryview] = [memoryview(b"")]
        self._by_address: dict[tuple[int, int], int] = {}
        self._by_sample: dict[tuple[int, bytes], list[int]] = {}

    def add(self, tensor: torch.Tensor, dim_order: Sequence[int]) -> int:
        data = tensor_bytes(tensor, dim_order)
        return self.add_bytes(data)

    def add_bytes(self, data: memoryview) -> int:
        from executorch.exir import _native

        address = (_native.address_of(data), data.nbytes)
        if data.nbytes > 0 and address in self._by_address:
            return self._by_address[address]
        candidates = self._by_sample.setdefault((data.nbytes, _sample(data)), [])
        for index in candidates:
            if _native.same_bytes(self.entries[index], data):
                return index
        self.entries.append(data)  # keeps the memory, hence the address, from being reused
        index = len(self.entries) - 1
        candidates.append(index)
        self._by_address[address] = index
        return index


def _sample(data: memoryview) -> bytes:
    middle = data.nbytes // 2
    return b"".join(
        bytes(data[at : at + _SAMPLE_BYTES])
        for at in (0, middle, max(0, data.nbytes - _SAMPLE_BYTES))
    )
