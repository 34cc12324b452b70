from __future__ import annotations

from torch.export import ExportedProgram

from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec


class DemoBackend(BackendDetails):
    """Writes the graph as text. For looking at; nothing runs it."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        text = "\n".join(
            [
                *(f"{s.key}={s.value!r}" for s in compile_specs),
                str(edge_program.graph_module.graph),
            ]
        )
        return PreprocessResult(text.encode())
