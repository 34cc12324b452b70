"""Bundled programs as files and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from executorch.devtools import _native
from executorch.devtools.bundled_program import schema
from executorch.devtools.bundled_program.core import BundledProgram
from executorch.exir._serialize._dataclass import _DataclassEncoder, _json_to_dataclass

__all__ = [
    "convert_from_flatbuffer",
    "convert_to_flatbuffer",
    "deserialize_from_flatbuffer_to_bundled_program",
    "deserialize_from_json_to_bundled_program",
    "serialize_from_bundled_program_to_flatbuffer",
    "serialize_from_bundled_program_to_json",
    "write_schema",
]


def _schema_of(bundled_program: BundledProgram | schema.BundledProgram) -> schema.BundledProgram:
    if isinstance(bundled_program, schema.BundledProgram):
        return bundled_program
    if not isinstance(bundled_program, BundledProgram):
        raise TypeError(f"expected a BundledProgram, found {bundled_program!r:.80}")
    return bundled_program.serialize_to_schema()


def serialize_from_bundled_program_to_flatbuffer(
    bundled_program: BundledProgram | schema.BundledProgram,
) -> bytes:
    """The .bpte file."""
    return _native.write_bundled_program(_schema_of(bundled_program))


def deserialize_from_flatbuffer_to_bundled_program(flatbuffer: bytes) -> schema.BundledProgram:
    """Read a .bpte file, verifying all of it. ValueError, with the place, for any other."""
    return _native.read_bundled_program(flatbuffer)


def serialize_from_bundled_program_to_json(
    bundled_program: BundledProgram | schema.BundledProgram,
) -> str:
    """The same as JSON: bytes as lists of numbers, a value with its type as `val_type`."""
    return json.dumps(_schema_of(bundled_program), cls=_DataclassEncoder)


def deserialize_from_json_to_bundled_program(program_json: bytes | str) -> schema.BundledProgram:
    """The inverse of `serialize_from_bundled_program_to_json`. TypeError where a field lacks."""
    fields = json.loads(program_json)
    found: schema.BundledProgram = _json_to_dataclass(fields, schema.BundledProgram)
    return found


def convert_to_flatbuffer(program_json: str) -> bytes:
    return serialize_from_bundled_program_to_flatbuffer(
        deserialize_from_json_to_bundled_program(program_json)
    )


def convert_from_flatbuffer(program_flatbuffer: bytes) -> bytes:
    program = deserialize_from_flatbuffer_to_bundled_program(program_flatbuffer)
    return serialize_from_bundled_program_to_json(program).encode()


def write_schema(d: str, schema_name: str) -> None:
    """Write a schema of this format, "bundled_program_schema" or "scalar_type", to `d`/NAME.fbs.
    The first includes the second from the same folder."""
    here = Path(__file__).resolve()
    sources = {
        "bundled_program_schema": here.parents[1] / "bundled_program.fbs",
        "scalar_type": here.parents[3] / "schema" / "scalar_type.fbs",
    }
    if schema_name not in sources:
        raise ValueError(f"schema {schema_name!r}: expected one of {sorted(sources)}")
    text = sources[schema_name].read_text()
    text = text.replace('include "executorch/schema/', 'include "')
    (Path(d) / f"{schema_name}.fbs").write_text(text)
