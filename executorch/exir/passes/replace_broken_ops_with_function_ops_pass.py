from functools import cache

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule

from executorch.exir.passes.graph_edit import GraphEdit, compute_value

_IRREGULAR = {"_reshape_alias": "view_copy", "lift_fresh": "clone", "_unsafe_view": "view_copy"}


@cache
def copy_variant(op: OpOverload) -> OpOverload | None:
    """The operator that returns a fresh tensor where `op` returns a view; None if `op` is no view."""
    schema = op._schema
    if op.namespace != "aten" or schema.is_mutable:
        return None
    if op._opname not in _IRREGULAR and all(r.alias_info is None for r in schema.returns):
        return None
    name = _IRREGULAR.get(op._opname, f"{op._opname}_copy")
    packet = getattr(torch.ops.aten, name, None)
    overload = op._overloadname if op._opname not in _IRREGULAR else "default"
    return getattr(packet, overload, None) if packet is not None else None


class ReplaceBrokenOpsWithFunctionalOpsPass(GraphEdit):
    """Turn views into copies.

    Before    y = aten.permute(x, dims)
    After     y = aten.permute_copy(x, dims)
    Ensures   equal values; results are contiguous, and the values downstream know it.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        stale: set[object] = set()
        modified = False
        for node in graph_module.graph.nodes:
            if node.op != "call_function":
                continue
            copy = None
            if isinstance(node.target, OpOverload):
                copy = copy_variant(node.target)
            if copy is not None:
                node.target = copy
                if copy is torch.ops.aten.view_copy.default:
                    node.args = node.args[:2]
                modified = True
            if copy is None and not any(a in stale for a in node.all_input_nodes):
                continue
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                continue
            before = _strides(node.meta.get("val"))
            if copy is None and before is None:
                continue
            value = compute_value(node.target, node.args, node.kwargs)
            if _strides(value) != before:
                stale.add(node)
                node.meta["val"] = value
        return modified


def _strides(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return tuple(getattr(getattr(s, "node", None), "expr", s) for s in value.stride())
    if isinstance(value, (tuple, list)):
        return tuple(_strides(v) for v in value)
    return None
