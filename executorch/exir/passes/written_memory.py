"""Which values of a graph lie in memory that operators write in place, and copies of them."""

from __future__ import annotations

from collections.abc import Callable

from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.graph_edit import provenance
from executorch.exir.graph.operator_kind import overload_of, written_arguments
from executorch.exir.passes.normalize_view_copy_base_pass import is_view_copy
from executorch.exir.torch_internals import schema_of


def memory_of(node: Node) -> Node:
    """The node whose memory `node` may come to share: a view copy may become a view."""
    while is_view_copy(node) and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def written_memory(
    graph_module: GraphModule, memory: Callable[[Node], Node] = memory_of
) -> set[Node]:
    """The nodes in whose memory operators write that mutate their arguments.

    memory  the node in whose memory a node's value lies
    """
    found: set[Node] = set()
    for node in graph_module.graph.nodes:
        op = overload_of(node.target) if node.op == "call_function" else None
        if op is not None and schema_of(op).is_mutable:
            found.update(map(memory, written_arguments(node, op)))
    return found


def clone_of(value: Node) -> Node:
    """Adds a clone of `value` where its graph inserts nodes."""
    fake = value.meta["val"]
    clone = value.graph.call_function(
        exir_ops.edge.dim_order_ops._clone_dim_order.default,
        (value,),
        {"dim_order": list(fake.dim_order())},
    )
    clone.meta = {**provenance(value), "val": fake.clone()}
    return clone
