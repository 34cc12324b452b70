"""Named blobs, as stores hand them to serializers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from executorch.exir._serialize._cord import Cord
from executorch.exir.schema import Bytes
from executorch.exir.tensor_layout import TensorLayout

_MOST_ALIGNED = 1 << 30  # bytes; the largest page of memory


def check_alignment(what: str, alignment: int) -> int:
    """`alignment`, in bytes. ValueError names `what` unless it is from 1 byte to 1 GiB: files are
    padded to it."""
    if not isinstance(alignment, int) or not 1 <= alignment <= _MOST_ALIGNED:
        raise ValueError(
            f"{what}: expected an alignment from 1 to {_MOST_ALIGNED} bytes, found {alignment!r}"
        )
    return alignment


@dataclass
class DataEntry:
    """Which buffer a key names and how that must lie; no layout means opaque bytes."""

    buffer_index: int
    alignment: int  # in bytes; 0 asks for none
    tensor_layout: TensorLayout | None


@dataclass
class DataPayload:
    buffers: Sequence[Bytes]
    named_data: dict[str, DataEntry]


class DataSerializer(ABC):
    """A container format for named data."""

    @abstractmethod
    def serialize(self, data: DataPayload) -> Cord:
        """The file of `data`."""

    @abstractmethod
    def deserialize(self, blob: Cord) -> DataPayload:
        """What `serialize` was given."""
