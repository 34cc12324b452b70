"""The bytes of constants, each stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from executorch.exir.torch_internals import FakeTensor

if TYPE_CHECKING:
    from executorch.exir._native import TransposedBytes

    Data = memoryview | TransposedBytes

_SAMPLE_BYTES = 64


def tensor_bytes(tensor: torch.Tensor, dim_order: Sequence[int]) -> Data:
    """The tensor's elements in `dim_order`, outermost first.

    Borrowed from the tensor, and keeping it alive, if its memory has that order, or is a matrix
    of the other order, whose bytes are then computed when they are read; else a copy.
    ValueError for tensors without data.
    """
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        raise ValueError("a fake tensor has no data")
    plain = tensor.detach().cpu().resolve_neg().resolve_conj()
    ordered = plain.permute(*dim_order) if plain.dim() > 1 else plain
    if ordered.numel() == 0:
        return memoryview(b"")
    if ordered.dim() == 2 and not ordered.is_contiguous() and ordered.mT.is_contiguous():
        from executorch.exir import _native

        rows, cols = ordered.shape
        return _native.TransposedBytes(_plain_bytes(ordered.mT), rows, cols, ordered.element_size())
    return _plain_bytes(ordered.contiguous())


def _plain_bytes(tensor: torch.Tensor) -> memoryview:
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]


class DataPool:
    """Distinct byte strings in the order they were first added; index 0 is reserved and empty.

    Equal bytes get one index. Memory seen before is recognized by its address; otherwise bytes are
    compared only with those of equal size and equal samples, so that nothing is hashed in full.
    """

    def __init__(self) -> None:
        self.entries: list[Data] = [memoryview(b"")]
        self._by_place: dict[tuple[int, int, int], int] = {}
        self._by_sample: dict[tuple[int, bytes], list[int]] = {}

    def add(self, tensor: torch.Tensor, dim_order: Sequence[int]) -> int:
        data = tensor_bytes(tensor, dim_order)
        return self.add_bytes(data)

    def add_bytes(self, data: Data) -> int:
        index = self.find(data)
        if index is None:
            self.entries.append(data)  # keeps the memory, hence the address, from being reused
            index = len(self.entries) - 1
            self._by_sample.setdefault((data.nbytes, _sample(data)), []).append(index)
            self._by_place[_place(data)] = index
        return index

    def find(self, data: Data) -> int | None:
        """The index of bytes equal to these."""
        from executorch.exir import _native

        place = _place(data)
        if data.nbytes > 0 and place in self._by_place:
            return self._by_place[place]
        for index in self._by_sample.get((data.nbytes, _sample(data)), ()):
            if _native.same_bytes(self.entries[index], data):
                return index
        return None


def _place(data: Data) -> tuple[int, int, int]:
    """(address, bytes, rows of a transposed matrix or 0)."""
    from executorch.exir import _native

    if isinstance(data, memoryview):
        return _native.address_of(data), data.nbytes, 0
    return _native.address_of(data.base), data.nbytes, data.rows


def _sample(data: Data) -> bytes:
    size = min(_SAMPLE_BYTES, data.nbytes)
    places = (0, (data.nbytes - size) // 2, data.nbytes - size)
    if isinstance(data, memoryview):
        return b"".join(bytes(data[at : at + size]) for at in places)
    return b"".join(data.read(at, size) for at in places)
