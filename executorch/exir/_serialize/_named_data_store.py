from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch

from executorch.exir._serialize.data_serializer import DataEntry
from executorch.exir.schema import Bytes
from executorch.exir.tensor_layout import TensorLayout


@dataclass
class NamedDataStoreOutput:
    """Distinct buffers, and the keys that name them: in the program, and by external file."""

    buffers: list[Bytes]
    pte_data: dict[str, DataEntry]
    external_data: dict[str, dict[str, DataEntry]]


class NamedDataStore:
    """Collects the named data of backends. A key is unique over the program and its files; equal
    bytes under several keys are stored once."""

    def __init__(self) -> None:
        from executorch.exir.emit._data_pool import DataPool

        self._pool = DataPool()
        self.pte_data: dict[str, DataEntry] = {}
        self.external_data: dict[str, dict[str, DataEntry]] = {}
        self.key_to_buffer_idx: dict[str, int] = {}

    @property
    def buffers(self) -> list[Bytes]:
        return list(self._pool.entries[1:])

    def add_named_data(
        self,
        key: str,
        data: Bytes | torch.Tensor,
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: TensorLayout | None = None,
    ) -> None:
        """Add bytes or a tensor under `key`, to the file `external_tag` or else to the program.

        ValueError if the key has other bytes already.
        """
        if isinstance(data, torch.Tensor):
            from executorch.exir.emit._data_pool import tensor_bytes
            from executorch.exir.tensor import dim_order_of, scalar_type_enum

            order = list(dim_order_of(data))
            if tensor_layout is None:
                kind = scalar_type_enum(data.dtype)
                tensor_layout = TensorLayout(kind, list(data.shape), order)
            data = cast(Bytes, tensor_bytes(data, order))
        index = self._pool.add_bytes(memoryview(data).cast("B")) - 1
        if self.key_to_buffer_idx.setdefault(key, index) != index:
            raise ValueError(f"the named data key {key!r} has other bytes already")
        target = self.pte_data
        if external_tag is not None:
            target = self.external_data.setdefault(external_tag, {})
        target[key] = DataEntry(index, alignment or 1, tensor_layout)

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        return NamedDataStoreOutput(self.buffers, self.pte_data, self.external_data)

    def merge_named_data_store(self, other: NamedDataStoreOutput) -> None:
        """Add all that another store holds."""
        for tag, entries in [(None, other.pte_data), *other.external_data.items()]:
            for key, entry in entries.items():
                data = other.buffers[entry.buffer_index]
                self.add_named_data(key, data, entry.alignment, tag, entry.tensor_layout)
