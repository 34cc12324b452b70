from __future__ import annotations

from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import GraphEdit, is_droppable, replace_node, same_shape


class RemoveNoopExpandCopyPass(GraphEdit):
    """Drop expansions to the shape that the operand has.

    Before    y = expand_copy(x, x.shape)
    After     x
    Leaves    expansions that repeat elements; one that is an output, of an input or other output.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        target = ops.edge.aten.expand_copy.default
        modified = False
        for node in list(graph_module.graph.find_nodes(op="call_function", target=target)):
            x = node.args[0]
            assert isinstance(x, Node)
            same = same_shape(x.meta["val"].shape, node.meta["val"].shape)
            if same and is_droppable(node, x):
                replace_node(node, x)
                modified = True
        return modified
