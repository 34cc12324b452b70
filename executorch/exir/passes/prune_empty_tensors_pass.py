import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit, insert_before, replace_node


def _is_empty(node: Node) -> bool:
    return any(isinstance(s, int) and s == 0 for s in node.meta["val"].shape)


class PruneEmptyTensorsPass(GraphEdit):
    """Drop operands without elements from `cat`.

    Before    y = cat([a, empty, b])
    After     y = cat([a, b])
    Ensures   equal values and dtypes; a cat left without operands becomes a `full` of zeros.
    Leaves    an operand whose dtype takes part in the promotion of the result.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.find_nodes(
            op="call_function", target=torch.ops.aten.cat.default
        ):
            operands = node.args[0]
            kept = [o for o in operands if not _is_empty(o)]
            dtype = node.meta["val"].dtype
            if len(kept) == len(operands):
                continue
            if not kept:
                value = node.meta["val"]
                zeros = insert_before(
                    node,
                    torch.ops.aten.full.default,
                    (list(value.shape), False if dtype == torch.bool else 0),
                    {"dtype": dtype},
                )
                replace_node(node, zeros)
            elif any(o.meta["val"].dtype == dtype for o in kept):
                node.update_arg(0, kept)
            else:
                continue
            modified = True
        return modified
