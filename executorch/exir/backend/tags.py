"""Marks that partitioners leave on nodes, and questions that they ask."""

from __future__ import annotations

from collections.abc import Iterable

from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.backend.subgraphs import TAG
from executorch.exir.graph.program_view import ProgramView

REFUSAL = "delegation_refusal"
# Graphs of control flow, while they are partitioned: the operator that calls them, such as scan.
BRANCH_OF = "branch_of"


def set_refusal(node: Node, reason: str) -> None:
    """Note why a node is not delegated; `get_delegation_info` lists it. The first reason counts."""
    node.meta.setdefault(REFUSAL, reason)


def is_scan_body(program: ExportedProgram) -> bool:
    """Whether the program is the body of a scan, which runs once for each row of its operands."""
    return getattr(program.graph_module.meta.get(BRANCH_OF), "__name__", "") == "scan"


def is_constant_data(ep: ExportedProgram, node: Node) -> bool:
    """Whether `node` is a parameter, a buffer or a constant that no call changes."""
    if node.op != "placeholder":
        return False
    signature = ep.graph_signature
    names: set[str] | None = getattr(signature, "_constant_names", None)
    if names is None:  # asked for every node, so found once
        names = {stored.name for stored in ProgramView(ep).stored}
        signature._constant_names = names  # type: ignore[attr-defined]
    return node.name in names


def tag_constant_data(edge_program: ExportedProgram) -> None:
    """Give constants with a tagged reader its tag: they become the delegate's own, and no input of
    the call. Of several tags the smallest; every reader's delegate owns the constant."""
    _tag(ProgramView(edge_program).stored)


def tag_mutated_buffer(edge_program: ExportedProgram) -> None:
    """Give buffers that calls change the tag of their reader: the delegate keeps them and their
    state from call to call, and neither buffer nor new value is passed."""
    _tag(ProgramView(edge_program).changing_buffers)


def _tag(nodes: Iterable[Node]) -> None:
    for node in nodes:
        tags = sorted(user.meta[TAG] for user in node.users if TAG in user.meta)
        if tags:
            node.meta[TAG] = tags[0]
