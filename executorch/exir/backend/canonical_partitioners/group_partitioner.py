from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupportBase

from executorch.exir.backend.canonical_partitioners.acyclic_groups import acyclic_groups


class GroupBasedPartitioner(CapabilityBasedPartitioner):
    """Proposes partitions of supported nodes, in linear time and without dependency cycles.

    node_groups  nodes that go into one partition or none. Without it, every node for itself.
    allows_single_node_partition, non_compute_ops, allowed_single_node_partition_ops
                 as of the base class: whether partitions of one computing node are worth it
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        node_groups: list[list[Node]] | None = None,
    ) -> None:
        super().__init__(
            graph_module,
            operator_support,
            allows_single_node_partition,
            non_compute_ops,
            allowed_single_node_partition_ops,
        )
        self.node_groups = node_groups

    def propose_partitions(self) -> list[Partition]:
        modules = dict(self.graph_module.named_modules())
        groups = self.node_groups or []
        grouped = {node for group in groups for node in group}
        supported = {
            node
            for node in self.graph_module.graph.nodes
            if node.op not in ("placeholder", "output", "get_attr")
            and (node in grouped or self.operator_support.is_node_supported(modules, node))
        }
        graph = self.graph_module.graph
        proposed = acyclic_groups(graph, supported, groups, self._is_worth_a_call)
        return [Partition(id=i, nodes=nodes) for i, nodes in enumerate(proposed)]

    def _is_worth_a_call(self, nodes: list[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        names = [_name(node.target) for node in nodes if node.op == "call_function"]
        if any(name in (self.allowed_single_node_partition_ops or ()) for name in names):
            return True
        skipped = {*(self.non_compute_ops or ()), "_operator.getitem"}
        return sum(name not in skipped for name in names) > 1


def _name(target: Any) -> str:
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"
