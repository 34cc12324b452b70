"""Partitioners for demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase, any_chain

from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import tag_constant_data
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.torch_internals import OpOverload

Modules = Mapping[str, torch.nn.Module]
_aten = exir_ops.edge.aten


class AddOperatorSupport(OperatorSupportBase):
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return node.op == "call_function" and node.target == _aten.add.Tensor


class MatmulOperatorSupport(OperatorSupportBase):
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return node.op == "call_function" and node.target == _aten.mm.default


class AllOperatorSupport(OperatorSupportBase):
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return node.op == "call_function"


_NOT_DECOMPOSED = (
    torch.ops.aten.linear.default,
    torch.ops.aten.scaled_dot_product_attention.default,
)


class OpsToNotDecomposeOperatorSupport(OperatorSupportBase):
    def is_node_supported(self, submodules: Modules, node: Node) -> bool:
        return node.op == "call_function" and getattr(node.target, "_op", None) in _NOT_DECOMPOSED


class _BySupport(Partitioner):
    """Tags what an operator support supports."""

    support: OperatorSupportBase
    prefix = "tag"
    spec_of_all = DelegationSpec("DemoBackend", [CompileSpec("max_value", bytes([4]))])

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tags = {}
        graph_module = exported_program.graph_module
        for partition in generate_partitions_from_list_of_nodes(
            graph_module, op_support=self.support
        ):
            tag = f"{self.prefix}{partition.id}"
            tags[tag] = self.spec_of_all
            for node in partition.nodes:
                node.meta[TAG] = tag
        return PartitionResult(exported_program, tags)


class AddMulPartitionerDemo(_BySupport):
    """Additions and matrix products, whose name stands for the product."""

    support = any_chain(AddOperatorSupport(), MatmulOperatorSupport())
    spec_of_all = DelegationSpec("BackendWithCompilerDemo", [CompileSpec("max_value", bytes([4]))])


class AddAttributePartitionerDemo(_BySupport):
    """Additions, with the attributes of the model that they read."""

    support: OperatorSupportBase = AddOperatorSupport()

    def partition(self, edge_exported_program: ExportedProgram) -> PartitionResult:
        result = super().partition(edge_exported_program)
        tag_constant_data(edge_exported_program)
        return result


class AllNodesPartitionerDemo(AddAttributePartitionerDemo):
    """Everything, constants included."""

    support = AllOperatorSupport()


class NonDecompTestPartitioner(_BySupport):
    """Operators that would be decomposed, but for those linear layers that have no bias."""

    support = OpsToNotDecomposeOperatorSupport()

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        def has_bias(node: Node) -> bool:
            return node.target != torch.ops.aten.linear.default or len(node.args) == 3

        return list(_NOT_DECOMPOSED), has_bias
