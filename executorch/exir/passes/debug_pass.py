from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.fx import GraphModule, Node

from executorch.exir.graph.pass_driver import GraphPass


class DebugPass(GraphPass):
    """Print the graph, and the value of every node; change nothing.

    msg                first line
    enable_debug_pass  False: print nothing
    show_src           the Python code that the graph stands for, too
    show_full_path     the whole metadata of each node, not its value alone
    show_all_frames    where each node comes from: the whole stack, not its last line
    path_filter        regular expression: of stacks only lines of files whose path matches
    show_spec          the spec of each node, once it has one
    log_filename       write to this file as well
    """

    def __init__(
        self,
        msg: str = "",
        enable_debug_pass: bool = True,
        show_src: bool = False,
        show_full_path: bool = False,
        show_all_frames: bool = False,
        path_filter: str | None = None,
        show_spec: bool = False,
        log_filename: str | None = None,
    ) -> None:
        self.msg, self.enabled, self.show_src = msg, enable_debug_pass, show_src
        self.show_full_path, self.show_all_frames = show_full_path, show_all_frames
        self.path_filter, self.show_spec = path_filter, show_spec
        self.log_filename = log_filename

    def edit_graph(self, graph_module: GraphModule) -> bool:
        if self.enabled:
            text = "\n".join(self._lines(graph_module))
            print(text)
            if self.log_filename:
                Path(self.log_filename).write_text(text + "\n")
        return False

    def _lines(self, graph_module: GraphModule) -> list[str]:
        lines = [self.msg]
        if self.show_src:
            lines.append(graph_module.code)
        for node in graph_module.graph.nodes:
            shown: Any = node.meta if self.show_full_path else node.meta.get("val")
            lines.append(f"{node.format_node()} {node.target} {shown}")
            if self.show_spec and "spec" in node.meta:
                lines.append(f"    spec: {node.meta['spec']}")
            lines += self._frames(node)
        return lines

    def _frames(self, node: Node) -> list[str]:
        if not (self.show_all_frames or self.path_filter):
            return []
        import re

        frames = [f.strip() for f in str(node.meta.get("stack_trace") or "").split("  File ")]
        wanted = [f for f in frames if f and re.search(self.path_filter or "", f.split(",")[0])]
        return [f"    File {' '.join(frame.split())}" for frame in wanted]
