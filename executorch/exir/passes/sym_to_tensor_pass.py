import torch
from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit, insert_before
from executorch.exir.graph.operands import dtype_beside, symbolic_operands


class SymToTensorPass(GraphEdit):
    """Turn symbolic numbers in places for tensors into tensors.

    Before    y = aten.mul.Tensor(x, s)         s: a SymInt
    After     t = aten.scalar_tensor(s, dtype); y = aten.mul.Tensor(x, t)
    Ensures   equal values and dtypes: t has the dtype that s takes beside x.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            for operand, replace in symbolic_operands(node):
                dtype = dtype_beside(node, operand.meta["val"])
                target = torch.ops.aten.scalar_tensor.default
                replace(insert_before(node, target, (operand,), {"dtype": dtype}))
                modified = True
        return modified
