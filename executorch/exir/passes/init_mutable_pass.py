from __future__ import annotations

from torch.fx import GraphModule

from executorch.exir.graph.pass_driver import GraphPass

# Metadata key of a placeholder: store the buffer's initial value even if it is all zero.
INIT_BUFFER = "et_init_buffer"


class InitializedMutableBufferPass(GraphPass):
    """Store the initial value of mutable buffers whose name contains one of `patterns`.

    Values that are not all zero are stored without being asked for; this adds those that are, for
    callers whose memory does not start as zeros.
    """

    def __init__(self, patterns: list[str]) -> None:
        super().__init__()
        self.patterns = patterns

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.find_nodes(op="placeholder"):
            if any(pattern in str(node.target) for pattern in self.patterns):
                node.meta[INIT_BUFFER] = True
                modified = True
        return modified
