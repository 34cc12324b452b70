from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView

_ADVICE = (
    "quantized operators are not fused for the portable kernels; delegate the quantized graph to a "
    "backend, or leave do_quant_fusion_and_const_prop off: dequantize and quantize run as operators"
)


class QuantFusionPass(Pass):
    """Refuses: there are no fused quantized operators to replace patterns by."""

    def __init__(self, _fix_node_meta_val: bool = False, node_value_dict: Any = None) -> None:
        super().__init__()

    def edit(self, view: ProgramView) -> bool:
        raise ExportError(ExportErrorType.NOT_SUPPORTED, _ADVICE)


def quant_fusion_and_const_prop_pass(program: ExportedProgram) -> ExportedProgram:
    raise ExportError(ExportErrorType.NOT_SUPPORTED, _ADVICE)
