import torch
from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit, is_droppable, replace_node, same_shape


class RemoveToCopyPass(GraphEdit):
    """Drop `_to_copy` that changes neither dtype, device, shape nor strides.

    Leaves    a graph output that would otherwise become an input or a second output.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.find_nodes(
            op="call_function", target=torch.ops.aten._to_copy.default
        ):
            source = node.args[0]
            before, after = source.meta["val"], node.meta["val"]
            if (
                before.dtype == after.dtype
                and before.device == after.device
                and same_shape(before.shape, after.shape)
                and same_shape(before.stride(), after.stride())
                and is_droppable(node, source)
            ):
                replace_node(node, source)
                modified = True
        return modified
