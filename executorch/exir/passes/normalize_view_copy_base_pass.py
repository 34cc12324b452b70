from __future__ import annotations

from torch.fx import GraphModule, Node

from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass


def is_view_copy(node: object) -> bool:
    if not isinstance(node, Node) or node.op != "call_function":
        return False
    op = overload_of(node.target)
    return op is not None and op.name() == "aten::view_copy"


class NormalizeViewCopyBasePass(GraphPass):
    """Base every view copy on a tensor that is none, in one pass over the graph.

    Before    a = view_copy(x, s); b = view_copy(a, t)
    After     a = view_copy(x, s); b = view_copy(x, t); `a` goes if it had no other user
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.nodes:
            # Nodes come in order, so the base's own base is final already.
            if is_view_copy(node) and is_view_copy(node.args[0]):
                node.update_arg(0, node.args[0].args[0])
                modified = True
        for node in reversed(graph_module.graph.nodes):
            if is_view_copy(node) and not node.users:
                graph_module.graph.erase_node(node)
                modified = True
        return modified
