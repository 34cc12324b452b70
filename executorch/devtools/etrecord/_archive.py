"""The file of an ETRecord: a zip archive of JSON texts and torch.save archives."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

import torch
from torch.export import ExportedProgram

from executorch.exir.serde.export_serialize import save_tensors
from executorch.exir.serde.program_json import program_from_json, program_to_json
from executorch.exir.torch_internals import SpecViolationError

IDENTIFIER = "ETRECORD_V0"
# The weights of the program `<name>` lie in `<name>_state_dict`, and so on.
PARTS = ("_state_dict", "_constants", "_example_inputs")


class Writer:
    """Adds members to an archive. Tensors are streamed from where they lie, never copied."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        archive.writestr(IDENTIFIER, "")

    def json(self, name: str, value: Any) -> None:
        self._archive.writestr(name, json.dumps(value))

    def tensors(self, name: str, value: Any) -> None:
        with self._archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
            save_tensors(value, member)

    def program(self, name: str, program: ExportedProgram) -> None:
        self._archive.writestr(name, program_to_json(program))
        for part in PARTS:
            self.tensors(name + part, getattr(program, part[1:]))


class Reader:
    """Members of the archive at `path`. ValueErrors name the file and the member."""

    def __init__(self, path: Any) -> None:
        self._path = path
        if not isinstance(path, (str, os.PathLike)) and not hasattr(path, "seek"):
            raise TypeError(f"etrecord: expected a path or a binary file, got {type(path)}")
        try:
            self._archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise RuntimeError(
                f"{path}: invalid etrecord file, a zip archive was expected: {error}"
            ) from error
        self.names = self._archive.namelist()
        if IDENTIFIER not in self.names:
            self._archive.close()
            raise RuntimeError(
                f"{path}: no etrecord, or a damaged one: the member {IDENTIFIER} is missing; "
                f"found {self.names[:5]}"
            )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self._archive.close()

    def programs(self) -> list[str]:
        """Names of the members that are programs, in the file's order."""
        return [n for n in self.names if n + PARTS[0] in self.names]

    def json(self, name: str, kind: type) -> Any:
        """The value of a JSON member, which must be a `kind`; None without the member."""
        if name not in self.names:
            return None
        try:
            value = json.loads(self._bytes(name))
        except (ValueError, RecursionError) as error:
            raise self._error(name, f"no JSON text: {error}") from error
        if not isinstance(value, kind):
            raise self._error(name, f"expected {kind.__name__}, found {type(value).__name__}")
        return value

    def tensors(self, name: str) -> Any:
        """The value of a torch.save member; None without the member."""
        if name not in self.names:
            return None
        data = self._bytes(name)
        if not data:
            return None
        try:
            return torch.load(io.BytesIO(data), weights_only=True)
        except Exception as error:  # torch raises its own, pickle's and zip errors
            reason = str(error).strip().split("\n")[0]
            raise self._error(name, f"no tensors that can be loaded: {reason}") from error

    def program(self, name: str) -> ExportedProgram:
        parts = {}
        for part in PARTS:
            if name + part not in self.names:
                raise self._error(name, f"its member {name}{part} is missing")
            parts[part[1:]] = self.tensors(name + part)
        for part in ("state_dict", "constants"):
            if not isinstance(parts[part], dict):
                found = type(parts[part]).__name__
                raise self._error(f"{name}_{part}", f"expected dict, found {found}")
        try:
            return program_from_json(self._bytes(name), **parts)
        except (ValueError, SpecViolationError) as error:
            raise self._error(name, str(error)) from error

    def _bytes(self, name: str) -> bytes:
        try:
            return self._archive.read(name)
        except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
            raise self._error(name, str(error)) from error

    def _error(self, name: str, what: str) -> ValueError:
        return ValueError(f"{self._path}, member {name}: {what}")
