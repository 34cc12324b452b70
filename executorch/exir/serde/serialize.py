"""Exported programs, whose operators may be edge operators, as files and as bytes.

The file of `save` is torch.export's; edge operators are `edge:<namespace>.<op>.<overload>` there.
`serialize` makes the parts of an ETRecord: programs that call delegates are possible.
"""

from __future__ import annotations

import copyreg
import io
import os
from dataclasses import dataclass
from typing import IO, Any

import torch
from torch.export import ExportedProgram

from executorch.exir.dialects.edge._ops import EdgeOpOverload, edge_op_named
from executorch.exir.torch_internals import (
    ExtensionHandler,
    FakeTensor,
    FakeTensorMode,
    fake_tensors_read_into,
    reduce_fake_tensor,
    register_extension,
    registered_extension_types,
    schema_of,
)
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier


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
    f: str | os.PathLike[str] | io.BytesIO,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
) -> None:
    """Write an exported program, of the ATen or edge dialect, to a file."""
    register_edge_operators()
    torch.export.save(ep_save, f, extra_files=extra_files, opset_version=opset_version)


def load(
    f: str | os.PathLike[str] | io.BytesIO,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read what `save` wrote."""
    register_edge_operators()
    return torch.export.load(
        f, extra_files=extra_files, expected_opset_version=expected_opset_version
    )


@dataclass
class SerializedArtifact:
    """A program in parts: its text, and archives of `torch.save`."""

    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialize(exported_program: ExportedProgram) -> SerializedArtifact:
    """The parts of a program of the ATen or edge dialect, with or without delegates."""
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


def load_tensors(archive: bytes, mode: FakeTensorMode | None = None) -> Any:
    """What `save_tensors` wrote; fake tensors become ones of `mode`, by default a new one."""
    with fake_tensors_read_into(mode or FakeTensorMode(allow_non_fake_inputs=True)):
        return torch.load(io.BytesIO(archive), weights_only=True)


def save_tensors(value: Any, file: IO[bytes]) -> None:
    """`torch.save`, also of fake tensors, of which only shape and type are kept."""
    taken = FakeTensor in copyreg.dispatch_table
    if not taken:
        copyreg.pickle(FakeTensor, reduce_fake_tensor)
    try:
        torch.save(value, file)
    finally:
        if not taken:
            del copyreg.dispatch_table[FakeTensor]
