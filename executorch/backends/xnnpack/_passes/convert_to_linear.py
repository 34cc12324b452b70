from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node

from executorch.backends.xnnpack.linear import rows_around
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.pass_driver import GraphPass

_aten = ops.edge.aten


class ConvertToLinearPass(GraphPass):
    """Turn products with a transposed matrix back into linear.

    Before    w_t = permute_copy(w, [1, 0]); y = addmm(b, x, w_t), or mm(x, w_t), and views of x
              and y that only join and split the dimensions in front
    After     y = linear(x, w, b)
    Requires  edge operators.
    Leaves    addmm with factors, products with other matrices.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            parts = _parts(node)
            if parts is None:
                continue
            x, weight, bias = parts
            rows = rows_around(node)
            source, output = (x, node) if rows is None else (rows.source, rows.split)
            arguments = (source, weight) if bias is None else (source, weight, bias)
            value = output.meta["val"]
            linear = insert_before(output, _aten.linear.default, arguments, value=value)
            replace_node(output, linear)
            modified = True
        if modified:
            graph_module.graph.eliminate_dead_code()
        return modified


def _parts(node: Node) -> tuple[Any, Node, Any] | None:
    """(x, weight, bias) of a product that is a linear."""
    if node.target is _aten.mm.default:
        (x, transposed), bias = node.args, None
    elif node.target is _aten.addmm.default and not node.kwargs and len(node.args) == 3:
        bias, x, transposed = node.args
        if not isinstance(bias, Node) or bias.meta["val"].dim() != 1:
            return None
    else:
        return None
    is_transposed = isinstance(transposed, Node) and (
        transposed.target is _aten.t_copy.default
        or (
            transposed.target is _aten.permute_copy.default
            and [d % 2 for d in transposed.args[1]] == [1, 0]  # type: ignore[union-attr]
        )
    )
    return (x, transposed.args[0], bias) if is_transposed else None  # type: ignore
