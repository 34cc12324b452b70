"""Small graphs for tests of passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule

from executorch.exir.capture._callable import as_module
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.program._decompose import decompose
from executorch.exir.program._program import to_edge
from executorch.exir.torch_internals import FakeTensorMode


def core_graph(function: Callable[..., Any], *args: Any, **options: Any) -> GraphModule:
    """The graph of `function` in core operators, with fake values; no weights allowed."""
    program = torch.export.export(as_module(function), args, **options)
    return decompose(program).graph_module


def edge(function: Callable[..., Any], *args: Any, **options: Any) -> ExportedProgram:
    """The edge program of a module or function; `options` are those of `torch.export.export`."""
    return to_edge(torch.export.export(as_module(function), args, **options)).exported_program()


def hand_made(build: Callable[..., Any], *inputs: torch.Tensor) -> GraphModule:
    """A graph of one call per operator that `build(call, *placeholders)` asks for.

    `call(target, *args, **kwargs)` adds a call with its fake value and returns its node.
    """
    from executorch.exir.graph.graph_edit import compute_value

    graph = Graph()
    mode = FakeTensorMode()
    placeholders = []
    for i, tensor in enumerate(inputs):
        placeholders.append(graph.placeholder(f"x{i}"))
        placeholders[-1].meta["val"] = mode.from_tensor(tensor)

    def call(target: Any, *args: Any, **kwargs: Any) -> Any:
        node = graph.call_function(target, args, kwargs)
        node.meta["val"] = compute_value(target, args, kwargs)
        return node

    results = build(call, *placeholders)
    graph.output(results if isinstance(results, tuple) else (results,))
    return GraphModule(torch.nn.Module(), graph)


def targets(program: GraphModule | ExportedProgram) -> list[str]:
    """Names of the operators called, in order."""
    called = [n.target for n in program.graph.nodes if n.op == "call_function"]
    return [t.__name__ if isinstance(t, EdgeOpOverload) else str(t) for t in called]
