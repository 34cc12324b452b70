"""Sub-graphs of control flow inside a graph module."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.fx import GraphModule, Node

_CONTROL_FLOW = ("cond", "map_impl", "while_loop", "scan")


def is_control_flow(node: Node) -> bool:
    """Whether `node` calls cond, map, while_loop or scan."""
    return (
        node.op == "call_function"
        and isinstance(node.target, torch._ops.HigherOrderOperator)
        and node.target.__name__ in _CONTROL_FLOW
    )


def get_control_flow_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """(attribute name, sub-graph, get_attr node) of every control flow operand, in node order."""
    found: list[tuple[str, GraphModule, Node]] = []
    for node in graph_module.graph.nodes:
        if node.op != "get_attr":
            continue
        module = getattr(graph_module, str(node.target), None)
        if isinstance(module, GraphModule) and any(is_control_flow(u) for u in node.users):
            found.append((str(node.target), module, node))
    return found


def all_graph_modules(graph_module: GraphModule) -> Iterator[GraphModule]:
    """`graph_module` and its control flow sub-graphs, breadth first."""
    level = [graph_module]
    while level:
        yield from level
        level = [sub for gm in level for _, sub, _ in get_control_flow_submodules(gm)]
