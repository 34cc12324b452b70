from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram
from torch.fx.passes.infra.pass_base import PassResult

from executorch.exir.passes.fuse_batch_norm_into_conv import FuseBatchNormIntoConv


class FuseBatchNormWithConvPass(FuseBatchNormIntoConv):
    """`FuseBatchNormIntoConv` of the program that a graph belongs to, which has its weights."""

    def __init__(self, exported_program: ExportedProgram) -> None:
        super().__init__()
        self.exported_program = exported_program

    def call(self, graph_module: Any) -> PassResult:
        result = super().call(self.exported_program)
        return PassResult(self.exported_program.graph_module, result.modified)
