from functools import cache

import torch
from torch.fx import GraphModule, Node

import executorch.exir.graph.fake_copies  # noqa: F401
from executorch.exir.graph.graph_edit import insert_before
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.graph.recompute import recompute_values, restore_operands
from executorch.exir.torch_internals import (
    HigherOrderOperator,
    OpOverload,
    op_name,
    overload_name,
    schema_of,
)

_IRREGULAR = {"_reshape_alias": "view_copy", "lift_fresh": "clone", "_unsafe_view": "view_copy"}


@cache
def copy_variant(op: OpOverload) -> OpOverload | None:
    """The operator that returns a fresh tensor where `op` returns a view; else None."""
    schema = schema_of(op)
    if op.namespace != "aten" or schema.is_mutable:
        return None
    if op_name(op) not in _IRREGULAR and all(r.alias_info is None for r in schema.returns):
        return None
    name = _IRREGULAR.get(op_name(op), f"{op_name(op)}_copy")
    packet = getattr(torch.ops.aten, name, None)
    overload = overload_name(op) if op_name(op) not in _IRREGULAR else "default"
    return getattr(packet, overload, None) if packet is not None else None


class ReplaceBrokenOpsWithFunctionalOpsPass(GraphPass):
    """Turn views into copies.

    Before    y = aten.permute(x, dims)
    After     y = aten.permute_copy(x, dims)
    Ensures   equal values; results are contiguous, and the values downstream know it. The graphs
              of control flow get their operands in the order that they had.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        stale: set[Node] = set()
        for node in graph_module.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, OpOverload):
                continue
            copy = copy_variant(node.target)
            if copy is not None:
                node.target = copy
                if copy is torch.ops.aten.view_copy.default:
                    node.args = node.args[:2]
                stale.add(node)
                modified = True
        changed = recompute_values(graph_module, stale)
        for call in graph_module.graph.nodes if changed else ():
            if isinstance(call.target, HigherOrderOperator):
                restore_operands(call, changed, _copy_in_order)
        return modified


def _copy_in_order(call: Node, operand: Node, value: torch.Tensor) -> Node:
    options = {"memory_format": torch.channels_last}
    return insert_before(call, torch.ops.aten.clone.default, (operand,), options, value=value)
