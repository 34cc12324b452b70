"""Graphs with delegate calls as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.fx import GraphModule, Node

from executorch.exir.delegate import is_lowered_module


def format_delegated_graph(graph_module: GraphModule) -> str:
    """The graph, and indented under each lowered module its backend and the graph it stands for."""
    return "\n".join(["graph():", *_lines(graph_module, "  ")]) + "\n"


def print_delegated_graph(graph_module: GraphModule) -> None:
    """Print `format_delegated_graph`."""
    print(format_delegated_graph(graph_module))


def _lines(graph_module: GraphModule, indent: str) -> Iterator[str]:
    for node in graph_module.graph.nodes:
        text = _format(node)
        if text:
            yield indent + text
        if node.op == "get_attr":
            module: Any = getattr(graph_module, str(node.target), None)
            if is_lowered_module(module):
                yield f"{indent}  backend_id: {module.backend_id}"
                yield f"{indent}  lowered graph():"
                yield from _lines(module.original_module.graph_module, indent + "    ")
            elif isinstance(module, GraphModule):
                yield f"{indent}  graph():"
                yield from _lines(module, indent + "    ")


def _format(node: Node) -> str | None:
    if node.op == "placeholder":
        return f"%{node.name} : [num_users={len(node.users)}] = placeholder[target={node.target}]"
    if node.op == "output":
        return f"return {node.args[0]}"
    return node.format_node()
