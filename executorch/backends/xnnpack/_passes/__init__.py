"""Passes over edge programs for XNNPACK, for scripts that run them by themselves.

This project's own delegate reads edge graphs as they are (`executorch.backends.xnnpack.lowering`)
and needs none of them.
"""

from __future__ import annotations

from typing import Any

from executorch.exir.passes.const_prop_pass import ConstPropPass
from executorch.exir.passes.memory_format_ops_pass import DimOrderOpsRevertPass
from torch.export import ExportedProgram

from executorch.backends.transforms.remove_clone_ops import RemoveCloneOpsTransform
from executorch.backends.transforms.remove_getitem_op import RemoveGetItemPass
from executorch.backends.xnnpack._passes.convert_to_linear import ConvertToLinearPass
from executorch.backends.xnnpack._passes.decompose_cat import DecomposeConcatenate
from executorch.backends.xnnpack._passes.fuse_batch_norm import FuseBatchNormPass
from executorch.backends.xnnpack._passes.xnnpack_pass import XNNPACKPass
from executorch.exir.capture._config import EdgeCompileConfig
from executorch.exir.program._program import _transform
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier

__all__ = ["XNNPACKPassManager", "XNNPACKRemoveCloneOpsTransform"]


class XNNPACKRemoveCloneOpsTransform(RemoveCloneOpsTransform):
    """Keeps the copy of an input that is an output."""

    def __init__(self) -> None:
        super().__init__(preserve_input_output_copies=True)


class XNNPACKPassManager:
    """Runs pass classes, these if none are given, over a program one after the other."""

    PASSES: tuple[type, ...] = (
        XNNPACKRemoveCloneOpsTransform,
        DimOrderOpsRevertPass,
        ConvertToLinearPass,
        ConstPropPass,
        FuseBatchNormPass,
        DecomposeConcatenate,
        RemoveGetItemPass,
    )

    def __init__(self, exported_program: ExportedProgram, passes: list[Any] | None = None) -> None:
        self._exported_program = exported_program
        self.passes = list(passes) if passes else list(self.PASSES)

    @property
    def exported_program(self) -> ExportedProgram:
        return self._exported_program

    def transform(self) -> ExportedProgram:
        """The program after the passes; each is made here, with the program if it takes one."""
        program = self._exported_program
        # Whole linears and pools are what these passes are for, and no core operators.
        unchecked = EXIREdgeDialectVerifier(EdgeCompileConfig(_check_ir_validity=False), True)
        for each in self.passes:
            if not isinstance(each, type):
                raise RuntimeError(
                    f"XNNPACKPassManager: expected a class of passes, found {each!r}"
                )
            pass_ = each(program) if issubclass(each, XNNPACKPass) else each()
            program = _transform(program, pass_, override_verifiers=[unchecked])
        return program
