from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.graph_edit import insert_before
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.graph.recompute import recompute_value, restore_operands
from executorch.exir.tensor import CHANNELS_LAST, dim_order_of
from executorch.exir.torch_internals import HigherOrderOperator

_CONTIGUOUS_ONLY = frozenset(
    {
        "aten::_adaptive_avg_pool2d",
        "aten::_native_batch_norm_legit_no_training",
        "aten::avg_pool2d",
        "aten::expand_copy",
        "aten::mean.dim",
        "aten::sum.dim_IntList",
    }
)


class LegalizePortableDimOrderPass(GraphPass):
    """Give operators that read contiguous tensors only such a tensor.

    Before    y = mean(x, [2, 3]), x channels-last
    After     c = _to_dim_order_copy(x, dim_order=[0, 1, 2, 3]); y = mean(c, [2, 3])
    Requires  edge dialect with dim orders.
    Ensures   fake values behind the copy have the strides that the operators then give. Delegates
              and the graphs of control flow get their operands in the order that they had.
    Leaves    operators whose first operand is contiguous.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        changed: dict[Node, Any] = {}  # the values of those whose result now has another order
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            op = overload_of(node.target)
            operand: Any = node.args[0] if node.args else None
            if (
                op is not None
                and op.name() in _CONTIGUOUS_ONLY
                and not _is_contiguous(operand.meta["val"])
            ):
                node.update_arg(0, _contiguous_copy(node, operand))
                modified = True
            elif changed.keys().isdisjoint(node.all_input_nodes):
                continue
            before = node.meta["val"]
            if isinstance(node.target, HigherOrderOperator):
                restore_operands(node, changed, _copy_in_order)
            elif recompute_value(node):
                changed[node] = before
        return modified


def _is_contiguous(value: torch.Tensor) -> bool:
    return value.dim() != len(CHANNELS_LAST) or dim_order_of(value) != CHANNELS_LAST


def _contiguous_copy(user: Node, operand: Node) -> Node:
    return _copy_in_order(user, operand, operand.meta["val"].contiguous())


def _copy_in_order(user: Node, operand: Node, value: torch.Tensor) -> Node:
    """A copy of `operand` before `user`, with `value` and its order of dims."""
    return insert_before(
        user,
        exir_ops.edge.dim_order_ops._to_dim_order_copy.default,
        (operand,),
        {"dim_order": list(dim_order_of(value))},
        value=value,
    )
