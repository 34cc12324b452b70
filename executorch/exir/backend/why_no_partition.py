"""Why nodes are not delegated."""

from __future__ import annotations

from collections.abc import Mapping
from logging import Logger

import torch
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from executorch.exir.backend.tags import set_refusal
from executorch.exir.graph.source_line import source_line


class WhyNoPartition:
    """Logs a reason, with the user's line, and leaves it on the node."""

    def __init__(self, logger: Logger) -> None:
        self.logger = logger

    def __call__(self, node: Node, reason: str) -> None:
        set_refusal(node, reason)
        self.logger.debug("%s is not delegated: %s (%s)", node, reason, source_line(node))


class WhyNoPartitionReporter:
    """Collects reasons."""

    def __init__(self) -> None:
        self._rejections: dict[Node, list[str]] = {}

    def report_reject(self, node: Node, reason: str) -> None:
        set_refusal(node, reason)
        self._rejections.setdefault(node, []).append(reason)

    def wrap_check(
        self, operator_support: OperatorSupportBase, message: str
    ) -> OperatorSupportBase:
        """The same support, that reports `message` for what it refuses."""
        return ReportRejected(operator_support, self, message)

    def get_table_report(self) -> str:
        """A table: node, operator, reasons, the user's line."""
        from tabulate import tabulate

        rows = [
            (node.name, getattr(node.target, "__name__", node.target), "; ".join(why), line)
            for node, why in self._rejections.items()
            for line in [source_line(node)]
        ]
        return tabulate(rows, headers=["Node", "Target", "Reason", "Line"], tablefmt="simple")


class ReportRejected(OperatorSupportBase):
    def __init__(
        self,
        operator_support: OperatorSupportBase,
        reporter: WhyNoPartitionReporter,
        message: str,
    ) -> None:
        self.operator_support, self.reporter, self.message = operator_support, reporter, message

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        supported = self.operator_support.is_node_supported(submodules, node)
        if not supported:
            self.reporter.report_reject(node, self.message)
        return supported
