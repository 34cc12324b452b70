import torch
from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit


class NormalizeTransposePass(GraphEdit):
    """Turn `aten.t` into `aten.t_copy`."""

    def edit(self, graph_module: GraphModule) -> bool:
        found = graph_module.graph.find_nodes(op="call_function", target=torch.ops.aten.t.default)
        for node in found:
            node.target = torch.ops.aten.t_copy.default
            node.meta["val"] = node.meta["val"].contiguous()
        return bool(found)
