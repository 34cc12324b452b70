"""Named blobs, as stores hand them to serializers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from executorch.exir._serialize._cord import Cord
from executorch.exir.schema import Bytes
from executorch.exir.tensor_layout import TensorLayout


@dataclass
class DataEntry:
    """Which buffer a key names and how that must lie; no layout means opaque bytes."""

    buffer_index: int
    alignment: int
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
