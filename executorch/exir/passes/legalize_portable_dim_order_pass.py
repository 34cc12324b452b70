from __future__ import annotations

from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.passes.graph_edit import GraphEdit, insert_before
from executorch.exir.passes.operator_kind import overload_of

_CONTIGUOUS_ONLY = frozenset(
    {
        "aten::_adaptive_avg_pool2d",
        "aten::avg_pool2d",
        "aten::expand_copy",
        "aten::mean.dim",
        "aten::sum.dim_IntList",
    }
)


class LegalizePortableDimOrderPass(GraphEdit):
    """Give operators that read contiguous tensors only such a tensor.

    Before    y = mean(x, [2, 3]), x channels-last
    After     c = _to_dim_order_copy(x, dim_order=[0, 1, 2, 3]); y = mean(c, [2, 3])
    Requires  edge dialect with dim orders.
    Leaves    operators whose first operand is contiguous.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            op = overload_of(node.target) if node.op == "call_function" else None
            if op is None or op.name() not in _CONTIGUOUS_ONLY:
                continue
            operand = node.args[0]
            identity = list(range(operand.meta["val"].dim()))
            if list(operand.meta["val"].dim_order()) == identity:
                continue
            copy = _contiguous_copy(node, operand, identity)
            node.update_arg(0, copy)
            modified = True
        return modified


def _contiguous_copy(user: Node, operand: Node, identity: list[int]) -> Node:
    return insert_before(
        user,
        exir_ops.edge.dim_order_ops._to_dim_order_copy.default,
        (operand,),
        {"dim_order": identity},
        value=operand.meta["val"].contiguous(),
    )
