"""A backend that renames and fuses operators, and tells which graph nodes its names stand for."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.delegate_mapping import DelegateMappingBuilder
from executorch.exir.dialects._ops import ops as exir_ops

_aten = exir_ops.edge.aten
_RENAMED = {
    _aten.tanh.default: "TANH_DECOMP",
    _aten.sin.default: "SIN",
    _aten.relu.default: "RELU",
    _aten.add.Tensor: "ADD",
}


class DummyOp:
    def __init__(self, op: str, delegate_debug_identifier: int | str) -> None:
        self.op, self.delegate_debug_identifier = op, delegate_debug_identifier

    def serialize(self) -> str:
        return f"{self.op}:{self.delegate_debug_identifier}"


class BackendWithDelegateMappingDemo(BackendDetails):
    """Fuses a convolution and the relu behind it into CONV_RELU."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        builder = DelegateMappingBuilder(generated_identifiers=True)
        ops: list[DummyOp] = []
        fused: set[Node] = set()
        for node in edge_program.graph_module.graph.nodes:
            if node.op != "call_function" or node in fused:
                continue
            nodes, name = [node], _RENAMED.get(node.target)
            if node.target == _aten.convolution.default:
                relu = [user for user in node.users if user.target == _aten.relu.default]
                nodes, name = [node, *relu], "CONV_RELU" if relu else "CONV"
                fused.update(relu)
            if name is None:
                raise RuntimeError(f"BackendWithDelegateMappingDemo does not run {node.target}")
            ops.append(DummyOp(name, builder.insert_delegate_mapping_entry(nodes=nodes)))
        return PreprocessResult(
            "#".join(op.serialize() for op in ops).encode(),
            debug_handle_map=builder.get_delegate_mapping(),
        )

    @staticmethod
    def get_test_model_and_inputs() -> tuple[torch.nn.Module, tuple[Any, ...]]:
        class ConvReLUTanh(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv = torch.nn.Conv1d(1, 1, 1, padding=1)
                self.relu = torch.nn.ReLU()

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.relu(self.conv(x)).tanh()

        return ConvReLUTanh(), (torch.ones(1, 1, 1),)
