"""Bundled programs as files and as JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from executorch.devtools import _native
from executorch.devtools.bundled_program import schema
from executorch.devtools.bundled_program.core import BundledProgram
from executorch.exir.scalar_type import ScalarType

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


def _to_json(item: Any) -> Any:
    if isinstance(item, schema.Value):
        return {"val_type": type(item.val).__name__, "val": _to_json(item.val)}
    if dataclasses.is_dataclass(item):
        fields = dataclasses.fields(item)
        return {field.name: _to_json(getattr(item, field.name)) for field in fields}
    if isinstance(item, ScalarType):
        return item.name
    return list(item) if isinstance(item, bytes) else item


def serialize_from_bundled_program_to_json(
    bundled_program: BundledProgram | schema.BundledProgram,
) -> str:
    """The same as JSON: bytes as lists of numbers, a value with its type as `val_type`."""
    return json.dumps(_schema_of(bundled_program), default=_to_json)


def _value(item: dict[str, Any]) -> schema.Value:
    if item["val_type"] == "Tensor":
        fields = item["val"]
        return schema.Value(
            schema.Tensor(
                ScalarType[fields["scalar_type"]],
                fields["sizes"],
                bytes(fields["data"]),
                fields["dim_order"],
            )
        )
    return schema.Value(getattr(schema, item["val_type"])(**item["val"]))


def _test_case(item: dict[str, Any]) -> schema.BundledMethodTestCase:
    return schema.BundledMethodTestCase(
        [_value(value) for value in item["inputs"]],
        [_value(value) for value in item.get("expected_outputs", ())],
    )


def deserialize_from_json_to_bundled_program(program_json: bytes | str) -> schema.BundledProgram:
    """The inverse of `serialize_from_bundled_program_to_json`. KeyError where a field lacks."""
    root = json.loads(program_json)
    return schema.BundledProgram(
        root["version"],
        [
            schema.BundledMethodTestSuite(
                suite["method_name"], [_test_case(case) for case in suite["test_cases"]]
            )
            for suite in root["method_test_suites"]
        ],
        bytes(root["program"]),
    )


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
