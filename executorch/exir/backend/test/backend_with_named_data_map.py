"""A backend that keeps its constants as named data beside its bytes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, PartitionResult
from executorch.exir.backend.test.op_partitioner_demo import _BySupport
from executorch.exir.dialects._ops import ops as exir_ops

_aten = exir_ops.edge.aten
_SUPPORTED = (_aten.add.Tensor, _aten.sub.Tensor, _aten.mul.Tensor, _aten.sin.default)


class BackendWithNamedDataMap(BackendDetails):
    """For each operator a key with its name as data."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        store = NamedDataStore()
        names = []
        for node in edge_program.graph_module.graph.nodes:
            if node.op == "call_function":
                name = node.target.__name__
                names.append(name)
                store.add_named_data(name, name.encode(), alignment=1)
        return PreprocessResult(
            ",".join(names).encode(),
            debug_handle_map={},
            data_store_output=store.get_named_data_store_output(),
        )


class SimpleOperatorSupport(OperatorSupportBase):
    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return node.op == "call_function" and node.target in _SUPPORTED


class BackendWithNDMPartitioner(_BySupport):
    support = SimpleOperatorSupport()
    spec_of_all = DelegationSpec("BackendWithNamedDataMap", [])

    def partition(self, edge_program: ExportedProgram) -> PartitionResult:
        # The parameter has another name than that of other partitioners, as upstream's has.
        return super().partition(edge_program)
