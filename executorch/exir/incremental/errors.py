"""Why a program cannot be made incremental."""

from __future__ import annotations

from torch.fx import Node

from executorch.exir.graph.source_line import source_line


class NotCausalError(ValueError):
    """A value may depend on later tokens, or it cannot be shown that it does not.

    The message names the node, what was found there, and the file and line of the model.
    """

    def __init__(self, node: Node, reason: str) -> None:
        where = f"at {source_line(node)}"
        super().__init__(f"{node.name} ({_operator(node)}): {reason}{_way_out(node)}\n  {where}")
        self.node_name = node.name


def _operator(node: Node) -> str:
    return str(node.target).removeprefix("aten.")


def _way_out(node: Node) -> str:
    """Of a mixture of experts, which sorts tokens or takes copies of them."""
    for _, kind in (node.meta.get("nn_module_stack") or {}).values():
        name = kind if isinstance(kind, str) else kind.__qualname__
        if name.endswith("Experts"):
            return (
                f", in {name.rpartition('.')[2]}; executorch.export.experts.replace_experts(model) "
                "has every expert compute every token, and count where it was picked"
            )
    return ""
