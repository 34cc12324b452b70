"""The ahead-of-time half of the backend whose run-time half is runtime/XNNPACKBackend.cpp."""

from __future__ import annotations

from torch.export import ExportedProgram

from executorch.backends.xnnpack import operators  # noqa: F401  (fills the table of rules)
from executorch.backends.xnnpack.lowering import Lowering
from executorch.backends.xnnpack.quantized import parts_of
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec


class XnnpackBackend(BackendDetails):
    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        if edge_program.graph_signature.buffers_to_mutate:
            raise RuntimeError("XnnpackBackend keeps no state between calls")
        lowering = Lowering(edge_program, parts_of)
        payload = lowering.payload
        return PreprocessResult(
            payload.to_bytes(),
            debug_handle_map=lowering.debug_handle_map(),
            data_store_output=payload.store.get_named_data_store_output(),
        )
