from __future__ import annotations

from executorch.exir.pass_base import ExportedProgramPassBase, ExportedProgramPassResult
from executorch.exir.pass_manager import with_graph_module
from executorch.exir.passes.fuse_batch_norm_into_conv import fuse_batch_norm_into_conv


class FuseBatchNormPass(ExportedProgramPassBase):
    """`fuse_batch_norm_into_conv` over one program."""

    def call(self, exported_program) -> ExportedProgramPassResult:  # type: ignore[no-untyped-def]
        modified = fuse_batch_norm_into_conv({"forward": exported_program})
        if modified:
            exported_program.graph_module.recompile()
            # A convolution may be an output now, under its own name.
            exported_program = with_graph_module(exported_program, exported_program.graph_module)
        return ExportedProgramPassResult(exported_program, modified)
