"""`make_constants_dense` under its public name."""

from __future__ import annotations

from torch.export import ExportedProgram

from executorch.exir.passes.make_constants_dense import make_constants_dense


def convert_constant_dim_order_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """Constants and buffers, neither contiguous nor channels-last, become contiguous, in place."""
    make_constants_dense(exported_program)
    return exported_program
