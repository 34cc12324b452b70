from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.passes.written_memory import clone_of
from executorch.exir.sub_graph_regions import sub_graphs


class SeparateLoopResults(GraphPass):
    """Let a loop write its carried tensors one after the other without losing an old one.

    Before    the body of while_loop or scan, of carried tensors a and b, returns (b, a)
    After     it returns (b, clone(a)): a is overwritten by b before it would be read
    Leaves    results that are read before their memory is overwritten, and numbers.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.nodes:
            name = getattr(node.target, "__name__", "") if node.op == "call_function" else ""
            if name in ("while_loop", "scan"):
                carried: Any = node.args[2 if name == "while_loop" else 1]
                modified |= _separate(sub_graphs(node, graph_module)[-1], len(carried))
        return modified


def _separate(body: GraphModule, n_carried: int) -> bool:
    output = body.graph.output_node()
    results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    overwritten: set[Node] = set()
    modified = False
    carried = body.graph.find_nodes(op="placeholder")[:n_carried]
    with body.graph.inserting_before(output):
        for i, before in enumerate(carried):
            value = results[i]
            if value in overwritten and isinstance(value.meta.get("val"), torch.Tensor):
                results[i] = clone_of(value)
                modified = True
            overwritten.add(before)
    output.args = (tuple(results),)
    return modified
