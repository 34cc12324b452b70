import torch
from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit


class RemoveNonCoreAtenOpGraphAssertsPass(GraphEdit):
    """Drop `aten._assert_tensor_metadata`: dtypes and devices are fixed ahead of time."""

    def edit(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        found = graph.find_nodes(
            op="call_function", target=torch.ops.aten._assert_tensor_metadata.default
        )
        for node in found:
            graph.erase_node(node)
        return bool(found)
