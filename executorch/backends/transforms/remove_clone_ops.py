from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.passes.patterns import (
    FoldRedundantDequantizeQuantizePass,
)

_clone = ops.edge.aten.clone.default
_clone_dim_order = ops.edge.dim_order_ops._clone_dim_order.default


class RemoveCloneOpsTransform(GraphPass):
    """Remove copies that keep the order of dimensions.

    Before    y = clone(x)
    After     x, for all readers of y
    Leaves    copies into another order; with `preserve_input_output_copies`, an input that is
              copied to an output. With `eliminate_quant_dequant_pairs`, a dequantization that a
              quantization with the same parameters follows then goes, too.
    """

    clone_ops = {_clone, _clone_dim_order}

    def __init__(
        self,
        preserve_input_output_copies: bool = False,
        eliminate_quant_dequant_pairs: bool = True,
    ) -> None:
        super().__init__()
        self.preserves_ends = preserve_input_output_copies
        self.folds_pairs = eliminate_quant_dequant_pairs

    def edit_graph(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        modified = False
        for node in list(graph.nodes):
            if node.target not in self.clone_ops or _changes_order(node):
                continue
            if self.preserves_ends and _joins_ends(node):
                continue
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
            modified = True
        if modified:
            if self.folds_pairs:
                FoldRedundantDequantizeQuantizePass().edit_graph(graph_module)
            graph.eliminate_dead_code()
        return modified


def _changes_order(node: Node) -> bool:
    before, after = node.args[0].meta.get("val"), node.meta.get("val")  # type: ignore[union-attr]
    if before is None or after is None:
        return False
    if node.target is _clone:
        wanted = node.kwargs.get("memory_format")
        if wanted in (None, torch.preserve_format):
            return False
        return not before.is_contiguous(memory_format=wanted)
    return before.dim_order() != after.dim_order()


def _joins_ends(node: Node) -> bool:
    source = node.args[0]
    is_input = isinstance(source, Node) and source.op == "placeholder"
    return is_input and any(user.op == "output" for user in node.users)
