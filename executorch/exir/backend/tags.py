"""Marks that partitioners leave on nodes, and questions that they ask."""

from __future__ import annotations

from collections.abc import Callable

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from executorch.exir.backend.subgraphs import TAG

REFUSAL = "delegation_refusal"

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def set_refusal(node: Node, reason: str) -> None:
    """Note why a node is not delegated; `get_delegation_info` lists it. The first reason counts."""
    node.meta.setdefault(REFUSAL, reason)


def is_constant_data(ep: ExportedProgram, node: Node) -> bool:
    """Whether `node` is a parameter, a buffer or a constant that no call changes."""
    if node.op != "placeholder":
        return False
    signature = ep.graph_signature
    names: set[str] | None = getattr(signature, "_constant_names", None)
    if names is None:  # asked for every node, so found once
        mutated = _mutated(ep)
        names = {name for name, target in _stored(ep).items() if target not in mutated}
        signature._constant_names = names  # type: ignore[attr-defined]
    return node.name in names


def _stored(ep: ExportedProgram) -> dict[str, str]:
    specs = ep.graph_signature.input_specs
    return {s.arg.name: str(s.target) for s in specs if s.kind in _STORED}  # type: ignore[union-attr]


def _mutated(ep: ExportedProgram) -> set[str]:
    specs = ep.graph_signature.output_specs
    return {str(s.target) for s in specs if s.kind is OutputKind.BUFFER_MUTATION}


def tag_constant_data(edge_program: ExportedProgram) -> None:
    """Give constants with a tagged reader its tag: they become the delegate's own, and no input of
    the call. Of several tags the smallest; every reader's delegate owns the constant."""
    mutated = _mutated(edge_program)
    _tag(edge_program, lambda target: target not in mutated)


def tag_mutated_buffer(edge_program: ExportedProgram) -> None:
    """Give buffers that calls change the tag of their reader: the delegate keeps them and their
    state from call to call, and neither buffer nor new value is passed."""
    mutated = _mutated(edge_program)
    _tag(edge_program, lambda target: target in mutated)


def _tag(program: ExportedProgram, wanted: Callable[[str], bool]) -> None:
    stored = _stored(program)
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in stored and wanted(stored[node.name]):
            tags = sorted(user.meta[TAG] for user in node.users if TAG in user.meta)
            if tags:
                node.meta[TAG] = tags[0]
