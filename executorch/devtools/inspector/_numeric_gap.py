"""Pairs of intermediate values: of a program's graph, run by PyTorch, and of the recorded run.

Both sides are grouped by debug handle; groups of the two sides that share a handle belong together,
as do groups that are connected by further ones. What such a group gives to the rest of the graph is
compared with what its last event at run time gave.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Interpreter, Node

from executorch.devtools.etrecord import ETRecord
from executorch.devtools.inspector._events import OPERATOR_CALL, Event
from executorch.devtools.inspector._inspector_utils import flat
from executorch.devtools.inspector._operators import edge_program, handles_of
from executorch.devtools.inspector.numerical_comparator.numerical_comparator_base import (
    DebugHandle,
    Held,
    IntermediateOutputMapping,
)
from executorch.devtools.progress import steps
from executorch.exir.side_effects import copied
from executorch.exir.torch_internals import pytree

Handles = dict[Node, set[int]]


def exported_program_handles(record: ETRecord, check_graph: bool) -> Handles | None:
    """Nodes of the ATen program -> handles of the edge nodes made of them.

    None if there is no ATen program, or with `check_graph` if the edge nodes stem from another.
    """
    aten, edge = record.exported_program, edge_program(record)
    if aten is None or edge is None:
        return None
    nodes = {node.name: node for node in aten.graph.nodes if _computes(node)}
    handles: Handles = {}
    for edge_node in edge.graph.nodes:
        handle = edge_node.meta.get("debug_handle")
        for source in _sources(edge_node.meta.get("from_node")):
            wanted = not check_graph or source.graph_id == record.export_graph_id
            if handle is not None and wanted and source.name in nodes:
                handles.setdefault(nodes[source.name], set()).update(flat(handle))
    return handles or None


def edge_handles(program: ExportedProgram) -> Handles:
    return {
        node: set(flat(node.meta["debug_handle"]))
        for node in program.graph.nodes
        if _computes(node) and node.meta.get("debug_handle") is not None
    }


def _computes(node: Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem


def _sources(from_node: Any) -> Iterator[Any]:
    for source in from_node or ():
        yield source
        yield from _sources(source.from_node)


# ---- ahead of time ----


class _Capture(Interpreter):
    """Runs a graph and keeps copies of some values, since later nodes may write into them."""

    def __init__(self, program: ExportedProgram, wanted: Iterable[Node]) -> None:
        super().__init__(program.graph_module)
        self.values: dict[Node, Any] = {}
        self._wanted = set(wanted)
        self._nodes = steps(list(program.graph.nodes), "computing reference values")

    def run_node(self, n: Node) -> Any:
        next(self._nodes)
        value = super().run_node(n)
        if n in self._wanted:
            self.values[n] = pytree.tree_map_only(
                torch.Tensor, lambda tensor: tensor.detach().clone(), value
            )
        return value


def capture(program: ExportedProgram, inputs: Any, wanted: Iterable[Node]) -> dict[Node, Any]:
    """The values of the nodes, computed by PyTorch. `inputs` are the model's arguments: a list or
    tuple of them, such a list inside another, or one tensor. ValueError for the wrong number."""
    leaves = pytree.tree_leaves(inputs)
    specs = program.graph_signature.input_specs
    expected = sum(spec.kind is InputKind.USER_INPUT for spec in specs)
    if len(leaves) != expected:
        raise ValueError(
            f"representative inputs: expected {expected} values, found {len(leaves)}; set them "
            "with ETRecord.update_representative_inputs"
        )
    given = iter(leaves)
    arguments = []
    for spec in specs:
        if spec.kind is InputKind.USER_INPUT:
            value = next(given)
        else:
            name = str(spec.target)
            value = program.state_dict.get(name, program.constants.get(name))
        # Programs as torch.export gives them may write into inputs and buffers.
        written = spec.kind in (InputKind.USER_INPUT, InputKind.BUFFER)
        arguments.append(copied(value) if written else value)
    runner = _Capture(program, wanted)
    with torch.no_grad():
        runner.run(*arguments, enable_io_processing=False)
    return runner.values


# ---- matching ----


@dataclass
class _Group:
    """Nodes and events that are connected by shared debug handles, each in order of execution."""

    nodes: list[Node] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def match(
    handles: Handles, values: Mapping[Node, Any], events: list[Event]
) -> tuple[IntermediateOutputMapping, dict[DebugHandle, list[Node]], dict[DebugHandle, list[str]]]:
    """Pairs of a node's and an event's value; (handles -> nodes); (handles -> names of events)."""
    pairs: IntermediateOutputMapping = {}
    node_names: dict[DebugHandle, list[Node]] = {}
    event_names: dict[DebugHandle, list[str]] = {}
    for group in _groups(handles, events):
        aot_handle = _unique(h for node in group.nodes for h in sorted(handles[node]))
        candidates = [v for n in _results(group.nodes) for v in flat(values.get(n))]
        for event in reversed(group.events):
            outputs = flat(event.debug_data)
            if event.delegate_backend_name is not None:
                # A delegate's outputs are the last of its recorded values; the ETRecord says how
                # many they are.
                outputs = outputs[-event.num_outputs :]
                candidates = candidates[-len(outputs) :]
            found = list(_pair(candidates, outputs))
            if found:
                runtime_handle = _unique(h for e in group.events for h in handles_of(e))
                node_names[aot_handle] = group.nodes
                event_names[runtime_handle] = [str(event.name)]
                for a, b in found:
                    pairs[aot_handle, Held(a)] = (runtime_handle, Held(b))
                break
    return pairs, node_names, event_names


def _groups(handles: Handles, events: list[Event]) -> list[_Group]:
    """The groups that have both nodes and events, in order of their first node."""
    parent: dict[int, int] = {}

    def root(handle: int) -> int:
        while parent.setdefault(handle, handle) != handle:
            handle = parent[handle]
        return handle

    def connect(together: Iterable[int]) -> None:
        first, *rest = together
        for handle in rest:
            parent[root(handle)] = root(first)

    valued = [e for e in events if e.name != OPERATOR_CALL and e.debug_data and handles_of(e)]
    # If a delegate's operations recorded values, leave its call out: it would connect all of them
    # to one group.
    told = {e._instruction_id for e in valued if e.is_delegated_op}
    valued = [e for e in valued if e.is_delegated_op or e._instruction_id not in told]
    for event in valued:
        connect(handles_of(event))
    for node_handles in handles.values():
        connect(node_handles)
    groups: dict[int, _Group] = {}
    for node, node_handles in handles.items():
        groups.setdefault(root(next(iter(node_handles))), _Group()).nodes.append(node)
    for event in valued:
        groups.setdefault(root(handles_of(event)[0]), _Group()).events.append(event)
    return [group for group in groups.values() if group.nodes and group.events]


def _results(nodes: list[Node]) -> list[Node]:
    """The nodes whose values nodes outside of the group use; the last node if there are none."""
    inside = set(nodes)

    def used_outside(node: Node) -> bool:
        return any(
            used_outside(user) if user.target is operator.getitem else user not in inside
            for user in node.users
        )

    return [node for node in nodes if used_outside(node)] or nodes[-1:]


def _pair(expected: list[Any], found: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs of values of equal shape: in order if all shapes agree, else each with the first that
    is left.

    A single one may have another shape, as reshapes of it need no instruction.
    """
    if len(expected) == len(found) and all(map(_alike, expected, found)):
        yield from zip(expected, found, strict=True)
        return
    if len(expected) == len(found) == 1 and _reshaped(expected[0], found[0]):
        yield expected[0], found[0].reshape(expected[0].shape)
        return
    left = list(expected)
    for value in found:
        for i, candidate in enumerate(left):
            if _alike(candidate, value):
                yield left.pop(i), value
                break


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape
    return isinstance(a, (int, float)) and isinstance(b, (int, float))


def _reshaped(a: Any, b: Any) -> bool:
    both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return both and a.numel() == b.numel() > 1


def _unique(handles: Iterable[int]) -> DebugHandle:
    return tuple(dict.fromkeys(handles))
