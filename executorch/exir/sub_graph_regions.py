"""Memory of control flow: each sub-graph's plan becomes one block of its parent's."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx import GraphModule, Node

from executorch.exir.tensor import TensorSpec
from executorch.exir.tensor_lifetimes import get_node_tensor_specs, storage_of
from executorch.exir.torch_internals import HigherOrderOperator

# (sub-graph, whether its inputs get memory) -> arena sizes, and the specs that lie in the arenas.
Plan = Callable[[GraphModule, bool], tuple[list[int], list[TensorSpec]]]


class Region(TensorSpec):
    """Bytes of an arena in which the sub-graphs of one control flow node are placed.

    All specs in it are relative to its start until it is resolved.
    """

    def __init__(self, size: int, mem_id: int, lifetime: list[int]) -> None:
        super().__init__(torch.uint8, [size])
        self.mem_id = mem_id
        self.lifetime = lifetime
        self.members: list[TensorSpec] = []


def plan_sub_graphs(graph_module: GraphModule, plan: Plan) -> list[Region]:
    """Plan the sub-graphs of every control flow node, which share one region: never do two run at
    the same time."""
    regions: list[Region] = []
    for index, node in enumerate(graph_module.graph.nodes):
        subs = sub_graphs(node, graph_module)
        if subs:
            plans = [_plan_one(sub, node, plan) for sub in subs]
            regions += _make_regions(plans, _lifetime(index, node))
    return regions


def sub_graphs(node: Node, graph_module: GraphModule) -> list[GraphModule]:
    """The graph modules among the arguments of a control flow node."""
    if node.op != "call_function" or not isinstance(node.target, HigherOrderOperator):
        return []
    found = []
    for argument in node.args:
        if isinstance(argument, Node) and argument.op == "get_attr":
            module = getattr(graph_module, str(argument.target), None)
            if isinstance(module, GraphModule):
                found.append(module)
    return found


def _lifetime(index: int, node: Node) -> list[int]:
    """A branch hands its results on where they lie, so they must stay; loops copy theirs out."""
    last = index
    if node.target.name() == "cond":  # type: ignore[union-attr]
        for spec in get_node_tensor_specs(node):
            last = max(last, storage_of(spec).lifetime[1])
    return [index, last]


def _plan_one(sub: GraphModule, node: Node, plan: Plan) -> tuple[list[int], list[TensorSpec]]:
    # The body of map and scan reads slices that are copied into memory of its own.
    inputs = node.target.name() in ("map_impl", "scan")  # type: ignore[union-attr]
    sizes, members = plan(sub, inputs)
    for inner in sub.meta.pop("regions", []):
        members += inner.members
    sub.meta["non_const_buffer_sizes"] = sizes
    return sizes, members


def _make_regions(
    plans: list[tuple[list[int], list[TensorSpec]]], lifetime: list[int]
) -> list[Region]:
    regions = []
    for mem_id in range(1, max(len(sizes) for sizes, _ in plans)):
        size = max(sizes[mem_id] for sizes, _ in plans if mem_id < len(sizes))
        if size > 0:
            region = Region(size, mem_id, list(lifetime))
            for _, members in plans:
                region.members += [m for m in members if m.mem_id == mem_id]
            regions.append(region)
    return regions


def resolve_regions(regions: list[Region]) -> None:
    """Move what lies in the regions to where the regions lie; what lies in theirs moves along."""
    for region in regions:
        for member in region.members:
            if member.mem_offset is not None:
                member.mem_offset += region.mem_offset or 0
