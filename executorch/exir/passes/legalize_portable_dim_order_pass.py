from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.graph_edit import compute_value, insert_before
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.tensor import CHANNELS_LAST, dim_order_of

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
    Ensures   fake values behind the copy have the strides that the operators then give.
    Leaves    operators whose first operand is contiguous.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        changed: set[Node] = set()  # whose result now has another order
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            op = overload_of(node.target)
            operand: Any = node.args[0] if node.args else None
            if op is not None and op.name() in _CONTIGUOUS_ONLY and not _is_contiguous(operand):
                node.update_arg(0, _contiguous_copy(node, operand))
                modified = True
            elif changed.isdisjoint(node.all_input_nodes):
                continue
            if _update_value(node):
                changed.add(node)
        return modified


def _is_contiguous(operand: Any) -> bool:
    value = operand.meta["val"]
    return value.dim() != len(CHANNELS_LAST) or dim_order_of(value) != CHANNELS_LAST


def _update_value(node: Node) -> bool:
    """Compute the fake value again; true if its strides are others."""
    new = compute_value(node.target, node.args, node.kwargs)
    if _strides(new) == _strides(node.meta["val"]):
        return False
    node.meta["val"] = new
    return True


def _strides(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return list(value.stride())
    return [_strides(v) for v in value] if isinstance(value, (list, tuple)) else []


def _contiguous_copy(user: Node, operand: Node) -> Node:
    identity = list(range(operand.meta["val"].dim()))
    return insert_before(
        user,
        exir_ops.edge.dim_order_ops._to_dim_order_copy.default,
        (operand,),
        {"dim_order": identity},
        value=operand.meta["val"].contiguous(),
    )
