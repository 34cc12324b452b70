from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import (
    insert_before,
    is_contiguous,
    is_droppable,
    replace_node,
)
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.graph.recompute import recompute_values
from executorch.exir.tensor import dim_order_of

_clone = ops.edge.dim_order_ops._clone_dim_order.default
_copy = ops.edge.dim_order_ops._to_dim_order_copy.default
_empty = ops.edge.dim_order_ops._empty_dim_order.default


class EnforceContiguousDimOrder(GraphPass):
    """Compute in contiguous memory, for backends that know no other.

    Before    y = relu(x), x and y channels last
    After     c = _clone_dim_order(x, [0, 1, 2, 3]); r = relu(c)
              y = _clone_dim_order(r, [0, 2, 3, 1])
    Requires  edge operators.
    Ensures   equal values; inputs and outputs keep their order. Copies into another order that lie
              between go; those that change the dtype become contiguous.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        output = graph.output_node()
        results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
        orders = [_other_order(result) for result in results]
        stale = _convert_inputs(graph)
        for node in graph.find_nodes(op="call_function", target=_empty):
            if list(node.kwargs.get("dim_order") or ()) != _in_order(node):
                stale |= _ordered(node)
        for node in [n for n in graph.nodes if n.target in (_clone, _copy)]:
            if not _is_at_boundary(node):
                stale |= _drop(node)
        recompute_values(graph_module, {n for n in stale if n.target is not _empty})
        results = list(output.args[0])  # type: ignore[arg-type]
        restored = [_restored(output, *pair) for pair in zip(results, orders, strict=True)]
        output.args = (tuple(restored), *output.args[1:])
        return bool(stale) or restored != results


def _other_order(node: Any) -> list[int] | None:
    """The order of dims of a tensor that is not contiguous."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    if not isinstance(value, Tensor) or is_contiguous(value):
        return None
    return list(dim_order_of(value))


def _in_order(node: Node) -> list[int]:
    return list(range(node.meta["val"].dim()))


def _calls(readers: Iterable[Node]) -> set[Node]:
    return {reader for reader in readers if reader.op == "call_function"}


def _ordered(node: Node) -> set[Node]:
    """Let a call give contiguous memory; what reads it."""
    node.kwargs = {**node.kwargs, "dim_order": _in_order(node)}
    node.meta["val"] = node.meta["val"].contiguous()
    return {node} | _calls(node.users)


def _convert_inputs(graph: Graph) -> set[Node]:
    """Let a contiguous copy be read in the place of each input in another order; its readers."""
    inputs = graph.find_nodes(op="placeholder")
    first = next(node for node in graph.nodes if node.op != "placeholder")
    stale: set[Node] = set()
    for node in inputs:
        readers = [n for n in node.users if not (n.target is _clone and _other_order(n) is None)]
        if _other_order(node) is None or not readers:
            continue
        copy = insert_before(first, _clone, (node,), {"dim_order": _in_order(node)})
        for reader in readers:
            reader.replace_input_with(node, copy)
        stale |= {copy} | _calls(readers)
    return stale


def _is_at_boundary(copy: Node) -> bool:
    """Whether it is a copy such as this pass puts at inputs and outputs."""
    source: Any = copy.args[0]
    if copy.target is not _clone:
        return False
    is_ordered = (_other_order(source) is None, _other_order(copy) is None)
    if is_ordered == (False, True):
        return bool(source.op == "placeholder")
    before_output = bool(copy.users) and all(user.op == "output" for user in copy.users)
    return before_output and is_ordered == (True, False)


def _drop(copy: Node) -> set[Node]:
    """Let readers read what a copy reads, if it has the copy's dtype; what is to compute anew."""
    source: Any = copy.args[0]
    is_cast = source.meta["val"].dtype != copy.meta["val"].dtype
    if is_cast or not is_droppable(copy, source):
        if list(copy.kwargs.get("dim_order") or ()) == _in_order(copy):  # type: ignore[call-overload]
            return set()
        return _ordered(copy)
    readers = _calls(copy.users)
    replace_node(copy, source)
    return readers


def _restored(output: Node, result: Any, order: list[int] | None) -> Any:
    """A copy of a result in the order that it had, if it has another one now."""
    if order is None or _other_order(result) == order:
        return result
    return insert_before(output, _clone, (result,), {"dim_order": order})
