"""`save` and `load` of exported programs whose operators may be edge operators.

The file is torch.export's; edge operators are written as `edge:<namespace>.<op>.<overload>`.
"""

from __future__ import annotations

import io
import os
from typing import Any

import torch
from torch._export.serde.serialize import (
    ExtensionHandler,
    _registered_extension_types,
    register_extension,
)
from torch.export import ExportedProgram

from executorch.exir.dialects.edge._ops import EdgeOpOverload, edge_op_named
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
        return op._schema


def register_edge_operators() -> None:
    """Let torch.export's files hold edge operators."""
    if EdgeOpOverload not in _registered_extension_types():
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
