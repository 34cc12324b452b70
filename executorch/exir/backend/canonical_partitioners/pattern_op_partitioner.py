"""Partitions of what matches patterns, or of what is supported."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import Partition
from torch.fx.passes.operator_support import OperatorSupportBase, any_chain
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

from executorch.exir.backend.canonical_partitioners.group_partitioner import GroupBasedPartitioner


class _Listed(OperatorSupportBase):
    def __init__(self, nodes: set[Node]) -> None:
        self.nodes = nodes

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return node in self.nodes


def generate_partitions_from_list_of_nodes(
    graph_module: GraphModule,
    pattern_list: list[list[Node]] | None = None,
    op_support: OperatorSupportBase | None = None,
) -> list[Partition]:
    """Connected partitions of the listed nodes and of those that `op_support` supports. Weights
    among them are in the partition that reads them first."""
    return _propose(graph_module, pattern_list, op_support, grouped=False)


def generate_grouped_partitions_from_list_of_nodes(
    graph_module: GraphModule,
    pattern_list: list[list[Node]] | None = None,
    op_support: OperatorSupportBase | None = None,
) -> list[Partition]:
    """As `generate_partitions_from_list_of_nodes`, each list as a whole in one partition."""
    return _propose(graph_module, pattern_list, op_support, grouped=True)


def generate_pattern_op_partitions(
    graph_module: GraphModule,
    patterns: list[Graph] | None = None,
    partitions_list: list[list[Node]] | None = None,
    op_support: OperatorSupportBase | None = None,
    ignore_literals: bool = False,
) -> list[Partition]:
    """Connected partitions of what matches one of the patterns, of the listed nodes, and of those
    that `op_support` supports. ignore_literals: numbers in a pattern match any number."""
    found = list(partitions_list or [])
    for pattern in patterns or ():
        matcher = SubgraphMatcher(
            pattern,
            match_output=False,
            match_placeholder=False,
            remove_overlapping_matches=True,
            ignore_literals=ignore_literals,
        )
        for match in matcher.match(graph_module.graph):
            inputs = set(match.placeholder_nodes)
            found.append([n for n in match.nodes_map.values() if n not in inputs])
    return generate_partitions_from_list_of_nodes(graph_module, found, op_support)


def _propose(
    graph_module: GraphModule,
    pattern_list: list[list[Node]] | None,
    op_support: OperatorSupportBase | None,
    grouped: bool,
) -> list[Partition]:
    groups = [[n for n in group if n.op == "call_function"] for group in pattern_list or ()]
    listed = _Listed({node for group in groups for node in group})
    support = any_chain(op_support, listed) if op_support is not None else listed
    partitioner = GroupBasedPartitioner(
        graph_module,
        support,
        allows_single_node_partition=True,
        node_groups=groups if grouped else None,
    )
    partitions = partitioner.propose_partitions()
    partition_of = {node: partition for partition in partitions for node in partition.nodes}
    wanted = any_chain(support, _Listed({n for group in pattern_list or () for n in group}))
    modules = dict(graph_module.named_modules())
    for node in graph_module.graph.nodes:
        readers = [partition_of[user] for user in node.users if user in partition_of]
        weight = node.op in ("placeholder", "get_attr") and readers
        if weight and wanted.is_node_supported(modules, node):
            readers[0].add_node(node)
    return partitions
