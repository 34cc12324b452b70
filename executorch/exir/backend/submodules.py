"""Nodes of a graph as a module that the graph calls."""

from __future__ import annotations

from typing import cast

from torch.fx import GraphModule, Node
from torch.fx.passes.tools_common import legalize_graph
from torch.fx.passes.utils.fuser_utils import fuse_as_graphmodule, insert_subgm


def create_submodule_from_nodes(
    gm: GraphModule, node_list: list[Node], tag: str, skip_legalize_graph: bool = False
) -> tuple[GraphModule, Node]:
    """Move `node_list` into the submodule `fused_<tag>` of `gm`; returns it and the node that calls
    it, whose fake value is a list, as are the results. `gm` is changed in place.

    skip_legalize_graph  the graph's order stays valid, so that it need not be sorted
    """
    wanted = set(node_list)
    nodes = [node for node in gm.graph.nodes if node in wanted]
    name = f"fused_{tag}"
    submodule, inputs, outputs = fuse_as_graphmodule(gm, nodes, name, always_return_tuple=True)
    insert_subgm(gm, submodule, inputs, outputs)
    if not skip_legalize_graph:
        legalize_graph(gm)
    gm.recompile()
    (call,) = gm.graph.find_nodes(op="call_module", target=name)
    results = cast("list[Node]", submodule.graph.output_node().args[0])
    call.meta["val"] = [node.meta.get("val") for node in results]
    return submodule, call
