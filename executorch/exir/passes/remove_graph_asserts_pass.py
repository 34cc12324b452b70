from __future__ import annotations

from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.passes.remove_dead_code import RemoveDeadCode

_ASSERTS = frozenset(
    {
        "aten::_assert_async.msg",
        "aten::_assert_scalar",
        "aten::_assert_tensor_metadata",
        "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size",
    }
)


class RemoveGraphAssertsPass(GraphEdit):
    """Drop run-time assertions and range hints: they have served their purpose ahead of time.

    Before    c = u <= 8; _assert_scalar(c, "...")
    After     nothing, unless c has another user
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            op = overload_of(node.target) if node.op == "call_function" else None
            if op is not None and op.name() in _ASSERTS:
                graph_module.graph.erase_node(node)
                modified = True
        return RemoveDeadCode().edit(graph_module) or modified
