"""Why a program cannot be made incremental."""

from __future__ import annotations

from torch.fx import Node

from executorch.exir.graph.source_line import source_line


class NotCausalError(ValueError):
    """A value may depend on later tokens, or it cannot be shown that it does not.

    The message names the node, what was found there, and the file and line of the model.
    """

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"{node.name} ({_operator(node)}): {reason}\n  at {source_line(node)}")
        self.node_name = node.name


def _operator(node: Node) -> str:
    return str(node.target).removeprefix("aten.")
