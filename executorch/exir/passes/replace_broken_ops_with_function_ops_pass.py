from functools import cache

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import compute_value
from executorch.exir.graph.pass_driver import GraphPass
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
    Ensures   equal values; results are contiguous, and the values downstream know it.
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
        recompute_values(graph_module, stale)
        return modified


def recompute_values(graph_module: GraphModule, stale: set[Node]) -> None:
    """Compute the fake values of `stale` calls anew, and of all that see other strides by that.

    Placeholders in `stale` have their new value already.
    """
    changed = {node for node in stale if node.op == "placeholder"}
    if not stale:
        return
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or isinstance(node.target, HigherOrderOperator):
            continue
        if node not in stale and changed.isdisjoint(node.all_input_nodes):
            continue
        before = _strides(node.meta.get("val"))
        if before is None:
            continue
        value = compute_value(node.target, node.args, node.kwargs)
        if _strides(value) != before:
            changed.add(node)
            node.meta["val"] = value


def _strides(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return tuple([s.node.expr if isinstance(s, torch.SymInt) else s for s in value.stride()])
    if isinstance(value, (tuple, list)):
        return tuple([_strides(v) for v in value])
    return None
