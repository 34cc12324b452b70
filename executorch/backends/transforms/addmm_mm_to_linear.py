from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before, replace_node, same_extent, same_shape
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.sym_util import eval_shape, upper_bound

_aten = ops.edge.aten


class AddmmToLinearTransform(GraphPass):
    """Turn products with a transposed matrix back into linear.

    Before    w_t = permute_copy(w, [1, 0]); y = addmm(b, x, w_t), or mm(x, w_t), and views of x
              and y that only join and split the dimensions in front
    After     y = linear(x, w, b)
    Requires  edge operators.
    Leaves    addmm with factors, products with other matrices.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        return _transform(graph_module.graph)


def apply_addmm_mm_to_linear_transform(graph: Graph) -> Graph:
    """`AddmmToLinearTransform` of a graph, in place."""
    _transform(graph)
    return graph


def get_shape(input_node: Node) -> list[int]:
    """The largest shape that a node's value can have; the traced one if a size has no bound."""
    shape = input_node.meta["val"].shape
    bounds = [upper_bound(extent) for extent in shape]
    known = [bound for bound in bounds if bound is not None]
    return known if len(known) == len(bounds) else list(eval_shape(shape))


def _transform(graph: Graph) -> bool:
    modified = False
    for node in list(graph.nodes):
        parts = _parts(node)
        if parts is None:
            continue
        x, weight, bias = parts
        source, output = _ends(x, node)
        arguments = (source, weight) if bias is None else (source, weight, bias)
        value = output.meta["val"]
        linear = insert_before(output, _aten.linear.default, arguments, value=value)
        replace_node(output, linear)
        modified = True
    if modified:
        graph.eliminate_dead_code()
    return modified


def _parts(node: Node) -> tuple[Node, Node, Any] | None:
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


def _ends(x: Node, product: Node) -> tuple[Node, Node]:
    """Operand and result of a product without the views around it, [..., k] -> [rows, k] and
    [rows, n] -> [..., n], if there are such."""
    readers = list(product.users)
    if x.target is not _aten.view_copy.default or len(readers) != 1:
        return x, product
    source, (split,) = x.args[0], readers
    if split.target is not _aten.view_copy.default or not isinstance(source, Node):
        return x, product
    before, after = _value(source).shape, _value(split).shape
    is_same = (
        len(before) > 1
        and same_extent(before[-1], _value(x).shape[-1])
        and same_shape([*before[:-1], _value(product).shape[-1]], after)
    )
    return (source, split) if is_same else (x, product)


def _value(node: Node) -> Tensor:
    value: Tensor = node.meta["val"]
    return value
