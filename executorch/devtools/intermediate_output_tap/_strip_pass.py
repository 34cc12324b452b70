from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

from executorch.devtools.intermediate_output_tap._reducers import get_reducer
from executorch.devtools.intermediate_output_tap._tap_pass import find_tap_nodes
from executorch.exir import EdgeProgramManager
from executorch.exir.graph.program_view import ProgramView


def strip_taps_(edge_manager: EdgeProgramManager) -> None:
    """Put what their reducers compute in the place of all taps. Before the backends got their
    parts, they would get that as well."""
    for method in edge_manager.methods:
        _strip(edge_manager.exported_program(method))


def _strip(program: ExportedProgram) -> None:
    graph = program.graph_module.graph
    taps = find_tap_nodes(program.graph_module)
    for tap in taps:
        source, name = tap.args
        assert isinstance(source, Node)
        before = set(graph.nodes)
        with graph.inserting_before(tap):
            result = get_reducer(str(name)).emit(graph, source)
        for node in graph.nodes:
            if node not in before:
                _complete(node, tap)
        tap.replace_all_uses_with(result)
        graph.erase_node(tap)
    if taps:
        view = ProgramView(program)
        view.update_outputs([spec for spec, _ in view.outputs])
        program.graph_module.recompile()


def _complete(node: Node, tap: Node) -> None:
    for key in ("stack_trace", "nn_module_stack", "debug_handle"):
        if key in tap.meta:
            node.meta.setdefault(key, tap.meta[key])
    if "val" not in node.meta:
        args, options = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        with torch.no_grad():
            node.meta["val"] = node.target(*args, **options)  # type: ignore[operator]
