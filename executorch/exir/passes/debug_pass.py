from torch.fx import GraphModule

from executorch.exir.passes.graph_edit import GraphEdit


class DebugPass(GraphEdit):
    """Print the graph, and the value of every node; change nothing."""

    def __init__(
        self, msg: str = "", enable_debug_pass: bool = True, show_src: bool = False
    ) -> None:
        self.msg, self.enabled, self.show_src = msg, enable_debug_pass, show_src

    def edit(self, graph_module: GraphModule) -> bool:
        if self.enabled:
            print(self.msg)
            if self.show_src:
                print(graph_module.code)
            for node in graph_module.graph.nodes:
                print(node.format_node(), node.meta.get("val"))
        return False
