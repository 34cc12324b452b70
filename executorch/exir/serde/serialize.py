"""Exported programs of any dialect, as files and as bytes.

`serialize` makes the parts of an ETRecord, and `save` a zip archive of them. Files of torch.export
name edge operators `edge:<namespace>.<op>.<overload>`.
"""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass
from typing import IO, Any

import torch
from torch.export import ExportedProgram

from executorch.exir._serialize._cord import Cord
from executorch.exir.dialects.edge._ops import EdgeOpOverload, edge_op_named
from executorch.exir.serde.export_serialize import load_tensors, save_tensors
from executorch.exir.torch_internals import (
    ExtensionHandler,
    register_extension,
    registered_extension_types,
    schema_of,
)
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier

_PARTS = {
    "exported_program": "serialized_exported_program.json",
    "state_dict": "serialized_state_dict.pt",
    "constants": "serialized_constants.pt",
    "example_inputs": "serialized_example_inputs.pt",
}
_EXTRA = "extra_files/"
_VERSION = "5.4"


class _EdgeOperators(ExtensionHandler):
    @classmethod
    def namespace(cls) -> str:
        return "edge"

    @classmethod
    def to_op_name(cls, op: Any) -> str:
        return op.__name__

    @classmethod
    def from_op_name(cls, name: str) -> EdgeOpOverload:
        return edge_op_named(*name.split(".", 2))

    @classmethod
    def op_schema(cls, op: Any) -> torch.FunctionSchema:
        return schema_of(op)


def register_edge_operators() -> None:
    """Let torch.export's files hold edge operators."""
    if EdgeOpOverload not in registered_extension_types():
        register_extension(EdgeOpOverload, _EdgeOperators)
    EXIREdgeDialectVerifier(class_only=True)  # a file names its dialect, which must be known


def save(
    ep_save: ExportedProgram,
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
) -> None:
    """Write an exported program of any dialect, with or without delegates, to a file.

    What is at a path keeps its content until all of the new one is written. OSError names it.
    """
    if opset_version is not None:
        raise ValueError("opset_version: a file names no versions of operators")
    artifact = serialize(ep_save)
    whole = _Whole() if isinstance(f, (str, os.PathLike)) else None
    with zipfile.ZipFile(whole or f, "w") as archive:  # type: ignore[call-overload]
        for part, name in _PARTS.items():
            archive.writestr(name, getattr(artifact, part))
        archive.writestr("version", _VERSION)
        for name, content in (extra_files or {}).items():
            archive.writestr(f"{_EXTRA}{name}", content)
    if whole is not None:
        whole.cord.save(f)


class _Whole:
    """A stream whose content goes to a file when it is complete."""

    def __init__(self) -> None:
        self.cord = Cord()

    def write(self, data: bytes) -> int:
        self.cord.append(data)
        return len(data)

    def flush(self) -> None:
        pass


def load(
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read what `save` wrote, or `torch.export.save`. Texts that were written as `extra_files` come
    into the entries of the dict that have their names. ValueError for another file."""
    if expected_opset_version is not None:
        raise ValueError("expected_opset_version: a file names no versions of operators")
    try:
        parts = _read(f, extra_files if extra_files is not None else {})
    except zipfile.BadZipFile as error:
        raise ValueError(f"{_found(f)}: {error}; {_EXPECTED}") from error
    if parts is not None:
        return deserialize(parts)
    if not isinstance(f, (str, os.PathLike)):
        f.seek(0)
    register_edge_operators()
    return torch.export.load(f, extra_files=extra_files)  # type: ignore[arg-type]


_EXPECTED = "expected an archive that exir.save or torch.export.save wrote"
_OF_TORCH = "archive_format"


def _read(
    f: str | os.PathLike[str] | IO[bytes], texts: dict[str, Any]
) -> SerializedArtifact | None:
    """The parts that `save` wrote; None for a file of torch.export.save."""
    with zipfile.ZipFile(f) as archive:  # type: ignore[arg-type]
        names = archive.namelist()
        if any(name.rpartition("/")[2] == _OF_TORCH for name in names):
            return None
        missing = {*_PARTS.values(), *(f"{_EXTRA}{name}" for name in texts)} - set(names)
        if missing:
            what = f"without {', '.join(sorted(missing))}; it has {names[:5]}"
            raise ValueError(f"{_found(f)}: {what}; {_EXPECTED}")
        for name in texts:
            texts[name] = archive.read(f"{_EXTRA}{name}").decode()
        return SerializedArtifact(**{part: archive.read(name) for part, name in _PARTS.items()})


def _found(f: str | os.PathLike[str] | IO[bytes]) -> str:
    """The file's name, size and first bytes."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _found(file)
    size = f.seek(0, os.SEEK_END)
    f.seek(0)
    name = getattr(f, "name", None)
    return f"{name or 'load'}: found {size} bytes that begin with {f.read(8)!r}"


@dataclass
class SerializedArtifact:
    """A program in parts: its text, and archives of `torch.save`."""

    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialize(exported_program: ExportedProgram) -> SerializedArtifact:
    """The parts of a program of any dialect, with or without delegates."""
    from executorch.exir.serde.program_json import program_to_json

    parts = []
    for tensors in (
        exported_program.state_dict,
        exported_program.constants,
        exported_program.example_inputs,
    ):
        file = io.BytesIO()
        save_tensors(tensors, file)
        parts.append(file.getvalue())
    return SerializedArtifact(program_to_json(exported_program), *parts)


def deserialize(artifact: SerializedArtifact) -> ExportedProgram:
    """The program of `serialize`. ValueError for text that is no program, or a damaged one."""
    from executorch.exir.serde.program_json import program_from_json

    state_dict, constants, example_inputs = (
        load_tensors(part)
        for part in (artifact.state_dict, artifact.constants, artifact.example_inputs)
    )
    return program_from_json(artifact.exported_program, state_dict, constants, example_inputs)
