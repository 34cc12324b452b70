"""The ahead-of-time half of the backend whose run-time half is runtime/XNNPACKBackend.cpp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node

from executorch.backends.xnnpack import operators  # noqa: F401  (fills the table of rules)
from executorch.backends.xnnpack.lowering import Lowering
from executorch.backends.xnnpack.quantized import parts_of
from executorch.backends.xnnpack.serialization.payload import EXTERNAL_INPUT, EXTERNAL_OUTPUT
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec


class XnnpackBackend(BackendDetails):
    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """Payloads are not copied: this only reads the program."""
        return edge_program

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


@dataclass
class ExternalMeta:
    """A payload value's position among the arguments of a call, and whether it is an input or an
    output, from the payload's flags."""

    external_id: int
    io_type: int


def generate_node_to_external_map(
    exported_program: ExportedProgram, edge_graph_module: GraphModule
) -> dict[Node, ExternalMeta]:
    """Maps the call's inputs (not constants), then its results, to payload values. A result that is
    an input, or was returned before, is written by a copy in the payload and is not in the map
    again."""
    owned = {
        s.arg.name  # type: ignore[union-attr]
        for s in exported_program.graph_signature.input_specs
        if s.kind is not InputKind.USER_INPUT
    }
    graph = edge_graph_module.graph
    inputs = [n for n in graph.find_nodes(op="placeholder") if n.name not in owned]
    found = {node: ExternalMeta(i, EXTERNAL_INPUT) for i, node in enumerate(inputs)}
    results = cast("list[Node]", graph.output_node().args[0])
    for slot, node in enumerate(results, start=len(inputs)):
        found.setdefault(node, ExternalMeta(slot, EXTERNAL_OUTPUT))
    return found


def assert_default_dim_order(edge_graph_module: GraphModule) -> None:
    """RuntimeError if an input's memory is not in the order of its dims."""
    for node in edge_graph_module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if hasattr(value, "dim_order") and value.dim_order() != tuple(range(value.dim())):
            raise RuntimeError(
                f"XnnpackBackend: input {node} has dim order {value.dim_order()}; expected "
                f"{tuple(range(value.dim()))}"
            )
