"""Where a node's origin is kept, and what identifies it."""

from __future__ import annotations

from torch.fx import Node

FROM_NODE_KEY = "from_node"
DEBUG_HANDLE_KEY = "debug_handle"
UNSET_DEBUG_HANDLE = 0  # of nodes that no operator of the model became


def get_greatest_ancestor_node_identifier(node: Node) -> str:
    """`name.graph id` of the first node of the export that `node` goes back to."""
    source = node.meta[FROM_NODE_KEY][-1]
    while source.from_node:
        source = source.from_node[-1]
    return f"{source.name}.{source.graph_id}"
