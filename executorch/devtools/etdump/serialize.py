"""ETDumps as bytes and as dataclasses."""

from __future__ import annotations

from executorch.devtools import _native
from executorch.devtools.etdump.schema_flatcc import ETDumpFlatCC

__all__ = ["deserialize_from_etdump_flatcc", "serialize_to_etdump_flatcc"]


def deserialize_from_etdump_flatcc(data: bytes, size_prefixed: bool = True) -> ETDumpFlatCC:
    """Read a dump, verifying all of it. What runtimes write has its size in front.

    ValueError, with the place, where it is no ETDump, cut off or damaged.
    """
    return _native.read_etdump(data, size_prefixed)


def serialize_to_etdump_flatcc(etdump: ETDumpFlatCC, size_prefixed: bool = False) -> bytes:
    """The bytes of a dump. OverflowError, with the field, for a number that does not fit."""
    return _native.write_etdump(etdump, size_prefixed)
