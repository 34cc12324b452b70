from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult


class AllNodePartitioner(Partitioner):
    """Gives the whole graph to one backend, with its parameters, buffers and constants."""

    def __init__(self, backend_id: str, compile_specs: list[CompileSpec]) -> None:
        super().__init__()
        self.delegation_spec = DelegationSpec(backend_id, compile_specs)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tag = self.delegation_spec.backend_id
        users = {
            spec.arg.name
            for spec in exported_program.graph_signature.input_specs
            if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
        }

        def is_claimed(node: Node) -> bool:
            return node.op != "output" and not (node.op == "placeholder" and node.name in users)

        claimed = [n for n in exported_program.graph_module.graph.nodes if is_claimed(n)]
        for node in claimed:
            node.meta["delegation_tag"] = tag
        tags = {tag: self.delegation_spec} if claimed else {}
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)
