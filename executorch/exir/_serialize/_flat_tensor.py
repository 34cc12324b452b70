"""External data files (.ptd): named blobs, one segment for each distinct one."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import lcm
from typing import Any, ClassVar

from executorch.exir._serialize._cord import Cord, in_memory
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize.data_serializer import (
    DataEntry,
    DataPayload,
    DataSerializer,
    check_alignment,
)
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import Bytes
from executorch.exir.tensor_layout import TensorLayout

_HEADER = struct.Struct("<4sI4Q")


@dataclass
class FlatTensorHeader:
    """What lies at byte 8 of a .ptd file. Offsets count from the start of the file."""

    EXPECTED_MAGIC: ClassVar[bytes] = b"FH01"
    EXPECTED_LENGTH: ClassVar[int] = _HEADER.size

    flatbuffer_offset: int
    flatbuffer_size: int
    segment_base_offset: int
    segment_data_size: int
    magic: bytes = EXPECTED_MAGIC
    length: int = EXPECTED_LENGTH

    @staticmethod
    def from_bytes(data: bytes) -> FlatTensorHeader:
        """Of the first bytes of `data`, whatever they say: see `is_valid`.

        ValueError where there are fewer than a header has.
        """
        if len(data) < _HEADER.size:
            raise ValueError(f"a header of a .ptd file has {_HEADER.size} bytes, found {len(data)}")
        magic, length, start, size, base, data_size = _HEADER.unpack_from(data)
        return FlatTensorHeader(start, size, base, data_size, magic, length)

    def is_valid(self) -> bool:
        return self.magic == self.EXPECTED_MAGIC and self.length >= self.EXPECTED_LENGTH

    def to_bytes(self) -> bytes:
        """A valid header, whatever `magic` and `length` are."""
        return _HEADER.pack(
            self.EXPECTED_MAGIC,
            self.EXPECTED_LENGTH,
            self.flatbuffer_offset,
            self.flatbuffer_size,
            self.segment_base_offset,
            self.segment_data_size,
        )


@dataclass
class AlignedData:
    """Bytes that must begin at a multiple of `alignment` bytes."""

    data: Cord
    alignment: int

    def __init__(self, data: Cord, alignment: int | None = None) -> None:
        self.data, self.alignment = data, alignment or 1


@dataclass
class FlatTensorConfig:
    segment_alignment: int = 128  # bytes


class FlatTensorSerializer(DataSerializer):
    def __init__(self, config: FlatTensorConfig | None = None) -> None:
        self.config = config or FlatTensorConfig()

    def serialize(self, data: DataPayload) -> Cord:
        from executorch.exir import _native

        file_alignment = check_alignment(
            "FlatTensorConfig.segment_alignment", self.config.segment_alignment
        )
        alignments: dict[int, int] = {}
        for key, entry in data.named_data.items():
            what, known = f"named data {key!r}", alignments.get(entry.buffer_index, 1)
            wanted = lcm(known, check_alignment(what, entry.alignment or 1))
            alignments[entry.buffer_index] = check_alignment(what, wanted)
        segments: list[Any] = []
        position: dict[int, int] = {}
        for index, alignment in alignments.items():
            position[index] = len(segments)
            segment = _native.Segment(alignment)
            segment.append(in_memory(data.buffers[index]))
            segments.append(segment)
        entries = [
            (key, position[entry.buffer_index], _layout_fields(entry.tensor_layout))
            for key, entry in data.named_data.items()
        ]
        return Cord(image=_native.write_flat_tensor(entries, segments, file_alignment))

    def deserialize(self, blob: Cord) -> DataPayload:
        from executorch.exir import _native

        buffers: list[bytes] = []
        named: dict[str, DataEntry] = {}
        for key, (layout, content) in _native.read_flat_tensor(bytes(blob)).items():
            known = TensorLayout(ScalarType(layout[0]), *layout[1:]) if layout else None
            named[key] = DataEntry(len(buffers), 1, known)
            buffers.append(content)
        return DataPayload(buffers, named)

    def deserialize_to_named_data_store_output(
        self, blob: Bytes, name: str
    ) -> NamedDataStoreOutput:
        """The contents of a .ptd file as what a store holds for the external file `name`."""
        payload = self.deserialize(Cord(blob))
        return NamedDataStoreOutput(list(payload.buffers), {}, {name: payload.named_data})


def _layout_fields(layout: TensorLayout | None) -> tuple[int, list[int], list[int]] | None:
    if layout is None:
        return None
    return int(layout.scalar_type), list(layout.sizes), list(layout.dim_order)
