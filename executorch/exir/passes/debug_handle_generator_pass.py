from __future__ import annotations

from torch.fx import Node

from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph_module import all_graph_modules


class DebugHandleGeneratorPass(Pass):
    """Number the nodes, so that a running instruction can be traced back to the user's code.

    Ensures   every node but placeholders and outputs has meta["debug_handle"] >= 1, breadth first
              over the graph and its sub-graphs; nodes made from one exported node share it.
    """

    def edit(self, view: ProgramView) -> bool:
        handles: dict[object, int] = {}
        for gm in view.graph_modules():
            for node in gm.graph.nodes:
                if node.op not in ("placeholder", "output"):
                    origin = origin_of(node)
                    node.meta["debug_handle"] = handles.setdefault(origin, len(handles) + 1)
        return True


def origin_of(node: Node) -> object:
    """An identity of the node of the first export that `node` stems from."""
    sources = node.meta.get("from_node")
    if not sources:
        return node
    source = sources[-1]
    while source.from_node:
        source = source.from_node[-1]
    return source.name, source.graph_id


def debug_handles(node: Node) -> tuple[int, ...]:
    """All handles of a node: one that stands for several has a tuple of them."""
    handle = node.meta.get("debug_handle") or ()
    return handle if isinstance(handle, tuple) else (handle,)


def merge_debug_handles(node: Node, gone: Node) -> None:
    """Let `node`, which now computes what `gone` did, have the handles of both."""
    handles = dict.fromkeys((*debug_handles(node), *debug_handles(gone)))
    if handles:
        node.meta["debug_handle"] = tuple(handles) if len(handles) > 1 else next(iter(handles))


def generate_missing_debug_handles(ep) -> None:  # type: ignore[no-untyped-def]
    """Give nodes that passes added after the numbering new handles, above the largest one."""
    nodes = [n for gm in all_graph_modules(ep.graph_module) for n in gm.graph.nodes]
    largest = max((h for n in nodes for h in debug_handles(n)), default=0)
    for node in nodes:
        if node.op not in ("placeholder", "output") and not node.meta.get("debug_handle"):
            largest += 1
            node.meta["debug_handle"] = largest
