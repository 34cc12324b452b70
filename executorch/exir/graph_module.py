"""Sub-graphs of control flow inside a graph module."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch
from torch.fx import GraphModule, Node

from executorch.exir.torch_internals import HigherOrderOperator, OpOverload

_CONTROL_FLOW = ("cond", "map_impl", "while_loop", "scan")


def is_control_flow(node: Node) -> bool:
    """Whether `node` calls cond, map, while_loop or scan."""
    return (
        node.op == "call_function"
        and isinstance(node.target, HigherOrderOperator)
        and node.target.__name__ in _CONTROL_FLOW
    )


def get_control_flow_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """(attribute name, sub-graph, calling node) of every sub-graph of control flow, in order of the
    calls and their arguments."""
    return _sub_graphs(graph_module, _CONTROL_FLOW)


def get_cond_while_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """As `get_control_flow_submodules`, of cond and while_loop alone."""
    return _sub_graphs(graph_module, ("cond", "while_loop"))


def get_scan_submodules(graph_module: GraphModule) -> list[tuple[str, GraphModule, Node]]:
    """As `get_control_flow_submodules`, of scan alone."""
    return _sub_graphs(graph_module, ("scan",))


def _sub_graphs(
    graph_module: GraphModule, kinds: Collection[str]
) -> list[tuple[str, GraphModule, Node]]:
    found: list[tuple[str, GraphModule, Node]] = []
    for node in graph_module.graph.nodes:
        if not is_control_flow(node) or node.target.__name__ not in kinds:
            continue
        for argument in node.args:
            if isinstance(argument, Node) and argument.op == "get_attr":
                module = getattr(graph_module, str(argument.target), None)
                if isinstance(module, GraphModule):
                    found.append((str(argument.target), module, node))
    return found


def _get_submodule(
    graph_module: GraphModule, node: Node, arg_index: int
) -> tuple[str, torch.nn.Module, Node]:
    """(attribute name, module, node) of the sub-module that is argument `arg_index` of `node`."""
    read = node.args[arg_index]
    if not isinstance(read, Node) or read.op != "get_attr":
        raise AssertionError(f"{node}: argument {arg_index} is {read}, expected a sub-module")
    return str(read.target), graph_module.get_submodule(str(read.target)), node


def contains_any_call_fn_target_op(graph_module: GraphModule, ops: Collection[object]) -> bool:
    """Whether a graph, or one of control flow below it, calls one of the overloads `ops`."""
    wanted = set(ops)
    return bool(wanted) and any(
        node.op == "call_function" and _of_torch(node.target) in wanted
        for module in all_graph_modules(graph_module)
        for node in module.graph.nodes
    )


def _of_torch(target: object) -> object:
    """The overload that an edge operator stands for; what else is called as it is."""
    return target if isinstance(target, OpOverload) else getattr(target, "_op", target)


def all_graph_modules(graph_module: GraphModule) -> Iterator[GraphModule]:
    """`graph_module` and its control flow sub-graphs, breadth first."""
    level = [graph_module]
    while level:
        yield from level
        level = [sub for gm in level for _, sub, _ in get_control_flow_submodules(gm)]
