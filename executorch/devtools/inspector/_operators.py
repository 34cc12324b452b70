"""Joins event blocks with what an ETRecord knows: operators, lines, modules, delegates."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from executorch.devtools.etrecord import ETRecord
from executorch.devtools.inspector._events import METHOD_EVENTS, Event, EventBlock
from executorch.devtools.inspector._inspector_utils import flat
from executorch.exir.delegate import delegate_calls, lowered_module_of
from executorch.exir.graph_module import all_graph_modules

METHOD = "forward"  # of records and dumps of several methods, this is the one that is joined


def edge_program(record: ETRecord) -> ExportedProgram | None:
    programs = record.edge_dialect_program
    return programs.get(METHOD) if isinstance(programs, Mapping) else programs


def join(blocks: list[EventBlock], record: ETRecord) -> None:
    """Fill in the fields of events that come from an ETRecord."""
    program = edge_program(record)
    nodes = _nodes_by_handle(program.graph_module) if program is not None else {}
    references = (record._reference_outputs or {}).get(METHOD) or []
    for block in blocks:
        index = block.bundled_input_index
        if index == -1 and len(references) == 1:  # of a run without a test case
            index = 0
        if index is not None and 0 <= index < len(references):
            block.reference_output = references[index]
        for event in block.events:
            if event.name not in METHOD_EVENTS and (event._instruction_id or 0) >= 0:
                _join_delegate(event, record)
                if event.debug_handles is None and not event.is_delegated_op:
                    event.debug_handles = _of_instruction(record._debug_handle_map, event)
                _join_nodes(event, nodes)


def handles_of(event: Event) -> list[int]:
    """The debug handles of an event, in order, without duplicates."""
    return list(dict.fromkeys(h for h in flat(event.debug_handles) if h is not None))


def _join_delegate(event: Event, record: ETRecord) -> None:
    entry = _of_instruction(record._delegate_map, event)
    if entry is None:
        return
    event.delegate_backend_name = entry["name"]
    outputs = _of_instruction(record._instruction_id_to_num_outs_map, event)
    if outputs is not None:
        event.num_outputs = len(outputs) if isinstance(outputs, list) else outputs
    if event.is_delegated_op:
        found = entry_of_delegate(entry.get("delegate_map") or {}, event.delegate_debug_identifier)
        event.debug_handles = list(found) if found is not None else None


def _of_instruction(by_method: Mapping[str, Any] | None, event: Event) -> Any:
    """The record's entry for an event's instruction. Its key is an int, or a str in records from
    files."""
    entries = (by_method or {}).get(METHOD) or {}
    found = entries.get(event._instruction_id)
    return entries.get(str(event._instruction_id)) if found is None else found


def entry_of_delegate(handles: Mapping[Any, Any], identifier: int | str | None) -> Any:
    """Find an operation's debug handles. A delegate's run-time identifier may contain more than
    that of its export."""
    for key in (identifier, str(identifier)):
        if key in handles:
            return handles[key]
    if isinstance(identifier, str):
        return next((handles[k] for k in handles if isinstance(k, str) and k in identifier), None)
    return None


def _join_nodes(event: Event, nodes: Mapping[int, list[Node]]) -> None:
    for handle in flat(event.debug_handles):
        for node in nodes.get(handle, ()):
            event.op_types.append(_op_type(node))
            event.stack_traces[f"{node.name}_"] = node.meta.get("stack_trace")
            event.module_hierarchy[f"{node.name}_"] = node.meta.get("nn_module_stack") or {}


def _nodes_by_handle(graph_module: GraphModule) -> dict[int, list[Node]]:
    nodes: dict[int, list[Node]] = {}
    for node in _operator_nodes(graph_module):
        for handle in flat(node.meta.get("debug_handle")):
            if handle is not None:
                nodes.setdefault(handle, []).append(node)
    return nodes


def _operator_nodes(graph_module: GraphModule) -> Iterator[Node]:
    """The calls in a graph, including those in control flow and in delegates' original programs."""
    for gm in all_graph_modules(graph_module):
        for node in gm.graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                yield node
        for call in delegate_calls(gm.graph):
            yield from _operator_nodes(lowered_module_of(call, gm).original_module.graph_module)


def _op_type(node: Node) -> str:
    """The name of an operator, `aten.add.Tensor`."""
    return str(getattr(node.target, "__name__", node.target))
