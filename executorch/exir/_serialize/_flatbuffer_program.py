"""The flatbuffer of a program without its segments, for tools that look into files."""

from __future__ import annotations

from executorch.exir.schema import Program


def _flatbuffer_to_program(data: bytes) -> Program:
    """The tables of a .pte file; ValueError for bytes that are no program."""
    from executorch.exir import _native

    return _native.read_program(data)[0]
