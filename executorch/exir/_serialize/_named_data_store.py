from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import Any, cast

import torch

from executorch.exir._serialize._cord import FileBackedData, in_memory
from executorch.exir._serialize.data_serializer import DataEntry, check_alignment
from executorch.exir.schema import Bytes
from executorch.exir.tensor_layout import TensorLayout


@dataclass
class NamedDataStoreOutput:
    """Distinct buffers, and the keys that name them: in the program, and by external file."""

    buffers: list[Bytes | FileBackedData]
    pte_data: dict[str, DataEntry]
    external_data: dict[str, dict[str, DataEntry]]

    def __deepcopy__(self, memo: dict[int, Any]) -> NamedDataStoreOutput:
        """Nobody changes the buffers, so copies share them."""
        keys = copy.deepcopy((self.pte_data, self.external_data), memo)
        return NamedDataStoreOutput(list(self.buffers), *keys)


class NamedDataStore:
    """Collects the named data of backends. A key is unique over the program and its files; equal
    bytes under several keys are stored once."""

    def __init__(self) -> None:
        from executorch.exir._serialize._data_pool import DataPool

        self._pool = DataPool()
        self._files: dict[int, FileBackedData] = {}  # buffers that lie in files
        self.pte_data: dict[str, DataEntry] = {}
        self.external_data: dict[str, dict[str, DataEntry]] = {}
        self.key_to_buffer_idx: dict[str, int] = {}

    @property
    def buffers(self) -> list[Bytes | FileBackedData]:
        return [self._files.get(i, data) for i, data in enumerate(self._pool.entries[1:])]

    def add_named_data(
        self,
        key: str,
        data: Bytes | FileBackedData | torch.Tensor,
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: TensorLayout | None = None,
    ) -> None:
        """Add bytes or a tensor under `key`, to the file `external_tag` or else to the program.

        `alignment` is in bytes, None is 1. ValueError if it is none, the key has other bytes
        already, or the layout is not the tensor's; then nothing was added.
        """
        alignment = check_alignment(f"named data {key!r}", 1 if alignment is None else alignment)
        if isinstance(data, torch.Tensor):
            from executorch.exir._serialize._data_pool import tensor_bytes
            from executorch.exir.tensor import dim_order_of, scalar_type_enum

            order = list(dim_order_of(data))
            found = TensorLayout(scalar_type_enum(data.dtype), list(data.shape), order)
            if tensor_layout not in (None, found):
                raise ValueError(
                    f"named data {key!r}: the tensor's layout is {found}, not {tensor_layout}"
                )
            tensor_layout = found
            data = cast(Bytes, tensor_bytes(data, order))
        content = memoryview(in_memory(data)).cast("B")
        if key in self.key_to_buffer_idx:
            known = self._pool.find(content)
            if known is None or known - 1 != self.key_to_buffer_idx[key]:
                raise ValueError(f"the named data key {key!r} has other bytes already")
        index = self._pool.add_bytes(content) - 1
        if isinstance(data, FileBackedData) and index not in self.key_to_buffer_idx.values():
            self._files.setdefault(index, data)
        self.key_to_buffer_idx[key] = index
        target = self.pte_data
        if external_tag is not None:
            target = self.external_data.setdefault(external_tag, {})
        target[key] = DataEntry(index, alignment, tensor_layout)

    def externalize_pte_data(self, max_data_bytes: int, tag_prefix: str) -> None:
        """Move the program's own data to files of at most `max_data_bytes`. Which data goes where
        depends on keys and sizes only; a tag is the prefix and the SHA-256 of the file's keys.

        ValueError for data that fits into none, and for a tag that is in use; then nothing moved.
        """
        cap = max_data_bytes
        if isinstance(cap, bool) or not isinstance(cap, int) or cap <= 0:
            raise ValueError(f"external data shard cap must be a positive integer, found {cap!r}")
        if not tag_prefix:
            raise ValueError("external data tag prefix must be nonempty")
        keys_of: dict[int, dict[str, DataEntry]] = {}
        for key, entry in sorted(self.pte_data.items()):
            keys_of.setdefault(entry.buffer_index, {})[key] = entry
        shards: list[dict[str, DataEntry]] = []
        room = 0
        for index, entries in keys_of.items():
            size = len(self.buffers[index])
            if size > max_data_bytes:
                raise ValueError(
                    f"buffer {index} has {size} bytes and exceeds external data shard cap "
                    f"{max_data_bytes}; its keys are {', '.join(entries)}"
                )
            if not shards or size > room:
                shards.append({})
                room = max_data_bytes
            shards[-1].update(entries)
            room -= size
        files = {_tag(tag_prefix, shard): dict(sorted(shard.items())) for shard in shards}
        for tag, shard in files.items():
            if self.external_data.get(tag, shard) != shard:
                raise ValueError(f"external data tag collision for {tag}")
        self.external_data = self.external_data | files
        self.pte_data = {}

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        return NamedDataStoreOutput(self.buffers, self.pte_data, self.external_data)

    def merge_named_data_store(self, other: NamedDataStoreOutput) -> None:
        """Add all that another store holds."""
        for tag, entries in [(None, other.pte_data), *other.external_data.items()]:
            for key, entry in entries.items():
                data = other.buffers[entry.buffer_index]
                self.add_named_data(key, data, entry.alignment, tag, entry.tensor_layout)


def _tag(prefix: str, entries: dict[str, DataEntry]) -> str:
    digest = hashlib.sha256("\0".join(sorted(entries)).encode()).hexdigest()
    return f"{prefix}_{digest}"
