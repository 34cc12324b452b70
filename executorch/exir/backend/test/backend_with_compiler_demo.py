"""A backend for demonstrations: its bytes are text that a reader can follow."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.delegate_mapping import DelegateMappingBuilder
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.source_line import source_line


class DemoOp(NamedTuple):
    op: str
    numel: int
    dtype: str


_aten = exir_ops.edge.aten
_SUPPORTED = {
    _aten.add.Tensor,
    _aten.sub.Tensor,
    _aten.mul.Tensor,
    _aten.mm.default,
    _aten.sin.default,
    _aten.relu.default,
}


class BackendWithCompilerDemo(BackendDetails):
    """Writes `<n ops>version:0#` and for each call
    `op:demo::<name>, numel:<n>, dtype:<dtype><debug_handle><h>#`.

    Unless every call reads the result of the one before it, `<args>` and the numbers of the
    operands stand before the `#`: inputs are counted first, then results; and after all calls
    `outputs:` and the numbers of the results that are returned.
    """

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        graph = edge_program.graph_module.graph
        for spec in edge_program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT:
                raise ValueError(f"BackendWithCompilerDemo keeps no constants, found {spec.target}")
        number = {n: i for i, n in enumerate(graph.find_nodes(op="placeholder"))}
        mapping = DelegateMappingBuilder()
        calls = [n for n in graph.nodes if n.op == "call_function"]
        results = list(graph.output_node().args[0])  # type: ignore[arg-type]
        is_chain = _is_chain(calls, results, list(number))
        text = []
        for node in calls:
            if node.target not in _SUPPORTED:
                raise RuntimeError(
                    f"BackendWithCompilerDemo does not run {node.target}\n"
                    f"  in your model: {source_line(node)}"
                )
            value: torch.Tensor = node.meta["val"]
            handle = node.meta.get("debug_handle", 0)
            mapping.insert_delegate_mapping_entry(handles=handle, identifier=handle)
            op = DemoOp(f"demo::{node.target.__name__}", value.numel(), str(value.dtype))  # type: ignore
            operands = "" if is_chain else f"<args>{_numbers(_operands(node), number)}"
            text.append(
                f"op:{op.op}, numel:{op.numel}, dtype:{op.dtype}<debug_handle>{handle}{operands}#"
            )
            number[node] = len(number)
        if not is_chain:
            text.append(f"outputs:{_numbers(results, number)}#")
        blob = f"{len(calls)}version:0#{''.join(text)}"
        return PreprocessResult(
            bytes(blob, encoding="utf8"),
            debug_handle_map=mapping.get_delegate_mapping(),
            _delegate_info_meta="test",
        )


def _operands(node: Node) -> list[Node]:
    return [a for a in node.args if isinstance(a, Node)]


def _numbers(nodes: list[Node], number: dict[Node, int]) -> str:
    return ",".join(str(number[n]) for n in nodes)


def _is_chain(calls: list[Node], results: list[Node], inputs: list[Node]) -> bool:
    reads = [*inputs[:1], *calls]
    return (
        len(inputs) == 1
        and all(_operands(call) == [source] for call, source in zip(calls, reads, strict=False))
        and results == calls[-1:]
    )
