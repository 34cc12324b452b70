"""What was delegated, what was not, and why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from torch.fx import GraphModule, Node

from executorch.exir.backend.tags import REFUSAL
from executorch.exir.graph.operator_kind import is_delegate_call
from executorch.exir.graph.source_line import source_line
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.lowered_backend_module import get_lowered_backend_modules


@dataclass
class DelegationBreakdown:
    """How often an operator occurs."""

    op_type: str = ""
    delegated: int = 0
    non_delegated: int = 0


@dataclass
class LeftOut:
    """A call that the program's own kernels run."""

    node: str
    op_type: str
    reason: str  # of the last partitioner that gave one
    line: str  # in the user's model


@dataclass
class DelegationInfo:
    """Counts of delegated calls and others, control flow included, and what was left out."""

    num_delegated_subgraphs: int
    num_delegated_nodes: int
    num_non_delegated_nodes: int
    delegation_by_operator: dict[str, DelegationBreakdown]
    left_out: list[LeftOut] = field(default_factory=list)

    def get_summary(self) -> str:
        """Three lines of text."""
        return (
            f"Total delegated subgraphs: {self.num_delegated_subgraphs}\n"
            f"Number of delegated nodes: {self.num_delegated_nodes}\n"
            f"Number of non-delegated nodes: {self.num_non_delegated_nodes}\n"
        )

    def get_operator_delegation_dataframe(self) -> Any:
        """A pandas DataFrame: op_type, occurrences_in_delegated_graphs,
        occurrences_in_non_delegated_graphs; by op_type, and a last row `Total`."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(_COLUMNS))

    def _rows(self) -> list[tuple[str, int, int]]:
        found = [self.delegation_by_operator[name] for name in sorted(self.delegation_by_operator)]
        rows = [(b.op_type, b.delegated, b.non_delegated) for b in found]
        return [*rows, ("Total", self.num_delegated_nodes, self.num_non_delegated_nodes)]

    def _repr_html_(self) -> str:
        """The summary and both tables, for notebooks."""
        parts = [f"<pre>{escape(self.get_summary())}</pre>", _table(_COLUMNS, self._rows())]
        if self.left_out:
            rows = [(e.node, e.op_type, e.reason, e.line) for e in self.left_out]
            parts.append(_table(("left out", "op_type", "reason", "line"), rows))
        return "\n".join(parts)


_COLUMNS = (
    "op_type",
    "occurrences_in_delegated_graphs",
    "occurrences_in_non_delegated_graphs",
)


def _table(header: tuple[str, ...], rows: list[Any]) -> str:
    lines = ["".join(f"<th>{escape(str(cell))}</th>" for cell in header)]
    lines += ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def get_delegation_info(graph_module: GraphModule) -> DelegationInfo:
    """What a graph delegates, between `to_backend` and `to_executorch`."""
    info = DelegationInfo(0, 0, 0, {})
    for gm in all_graph_modules(graph_module):
        for node in _calls(gm):
            if is_delegate_call(node):
                info.num_delegated_subgraphs += 1
            else:
                _count(info, node).non_delegated += 1
                info.num_non_delegated_nodes += 1
                reason = node.meta.get(REFUSAL)
                if reason is not None:
                    info.left_out.append(
                        LeftOut(node.name, _op_type(node), reason, source_line(node))
                    )
        for lowered in get_lowered_backend_modules(gm):
            for node in _calls(lowered.original_module.graph_module):
                _count(info, node).delegated += 1
                info.num_delegated_nodes += 1
    return info


def _calls(graph_module: GraphModule) -> Iterator[Node]:
    return (node for node in graph_module.graph.nodes if node.op == "call_function")


def _count(info: DelegationInfo, node: Node) -> DelegationBreakdown:
    name = _op_type(node)
    return info.delegation_by_operator.setdefault(name, DelegationBreakdown(name))


def _op_type(node: Node) -> str:
    """The node's name without its number."""
    return re.sub(r"_\d+$", "", node.name)


def print_delegation_info(graph_module: GraphModule) -> None:
    """Print summary and table."""
    from tabulate import tabulate

    info = get_delegation_info(graph_module)
    print(info.get_summary())
    frame = info.get_operator_delegation_dataframe()
    print(tabulate(frame, headers="keys", tablefmt="fancy_grid"))
