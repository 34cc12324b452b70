from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit


class InferViewExtent(GraphEdit):
    """Let the one extent of a view that only the call tells follow from the others.

    Before    s = sym_size(x, 1); y = view_copy(x, [1, s, 4, 8])
    After     y = view_copy(x, [1, -1, 4, 8])
    Requires  aten dialect with views turned into copies.
    Ensures   equal values; the number is not computed for the view's sake, and delegates need not
              be given it.
    Leaves    shapes with several such extents, and without elements.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.find_nodes(
            op="call_function", target=torch.ops.aten.view_copy.default
        ):
            shape = list(node.args[1])
            symbolic = [i for i, extent in enumerate(shape) if isinstance(extent, Node)]
            if len(symbolic) == 1 and 0 not in shape and -1 not in shape:
                shape[symbolic[0]] = -1
                node.args = (node.args[0], shape)
                modified = True
        return modified
