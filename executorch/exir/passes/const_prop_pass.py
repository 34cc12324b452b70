from __future__ import annotations

from typing import Any

from executorch.exir.pass_base import ExportedProgramPassBase, ExportedProgramPassResult
from executorch.exir.passes.constant_prop_pass import constant_prop_pass


class ConstPropPass(ExportedProgramPassBase):
    """`constant_prop_pass` as a pass over a program."""

    def call(self, exported_program: Any) -> ExportedProgramPassResult:
        before = len(exported_program.graph.nodes)
        program = constant_prop_pass(exported_program)
        return ExportedProgramPassResult(program, len(program.graph.nodes) != before)
