from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from executorch.exir import memory
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes.normalize_view_copy_base_pass import is_view_copy
from executorch.exir.passes.written_memory import written_memory
from executorch.exir.torch_internals import schema_of
from executorch.exir.view_spec import ViewSpec


class ReplaceViewCopyWithViewPass(GraphPass):
    """Turn view copies into names for the memory of their base.

    Before    y = view_copy(x, s)
    After     y = memory.view(x, s), whose spec is a ViewSpec
    Requires  specs; NormalizeViewCopyBasePass.
    Leaves    views of tensors that are not contiguous, whose bytes have another order, and graph
              outputs: their memory may be the caller's. With `planned_outputs`, which says that
              it is not, an output becomes a view if no other output shares the base, and the base
              is an operator's result that is not written in place.
    """

    def __init__(self, planned_outputs: bool = False) -> None:
        super().__init__()
        self.planned_outputs = planned_outputs

    def edit(self, view: ProgramView) -> bool:
        modified = self.planned_outputs and _edit_outputs(view.graph_module)
        return super().edit(view) or modified

    def edit_graph(self, graph_module: GraphModule) -> bool:
        return _make_views(
            n for n in graph_module.graph.nodes if is_view_copy(n) and not _is_output(n)
        )


def _is_output(node: Node) -> bool:
    return any(user.op == "output" for user in node.users)


def _edit_outputs(graph_module: GraphModule) -> bool:
    outputs = [n for n in graph_module.graph.output_node().all_input_nodes if is_view_copy(n)]
    written = written_memory(graph_module)
    alone = []
    for node in outputs:
        base: Any = node.args[0]
        op = overload_of(base.target) if base.op == "call_function" else None
        if op is None or schema_of(op).is_mutable or is_view_copy(base) or base in written:
            continue
        if sum(_is_output(user) for user in base.users) == 1 and not _is_output(base):
            alone.append(node)
    modified = _make_views(alone)
    output = graph_module.graph.output_node()
    output.meta["spec"] = map_arg(output.args[0], lambda n: n.meta.get("spec"))
    return modified


def _make_views(nodes: Iterable[Node]) -> bool:
    modified = False
    for node in nodes:
        base, spec = node.all_input_nodes[0].meta["spec"], node.meta["spec"]
        if base.dtype != spec.dtype or base.is_static_shape_tensor != spec.is_static_shape_tensor:
            continue
        if base.dim_order != tuple(range(len(base.shape))):
            continue
        node.target = memory.view
        node.args = (node.args[0], node.args[1])
        node.kwargs = {}
        node.meta["spec"] = ViewSpec(base, spec.shape)
        modified = True
    return modified
