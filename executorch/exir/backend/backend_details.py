"""What a backend's ahead-of-time half implements."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.torch_internals import LazyGraphModule, set_parts


@dataclass
class PreprocessResult:
    """What a backend made of one delegated sub-graph.

    processed_bytes    what its runtime half gets
    debug_handle_map   the backend's identifiers (all int or all str) -> debug handles of the graph
    data_store_output  named data, kept beside the processed bytes and shared between sub-graphs
    _delegate_info_meta anything for the backend's own reports; never serialized
    """

    processed_bytes: bytes = b""
    debug_handle_map: dict[int, tuple[int, ...]] | dict[str, tuple[int, ...]] | None = None
    data_store_output: NamedDataStoreOutput | None = None
    _delegate_info_meta: Any = None


def enforcedmethod(func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method that subclasses must define themselves."""
    func.__enforcedmethod__ = True  # type: ignore[attr-defined]
    return func


class BackendDetails(ABC):
    """The ahead-of-time half of a backend; the class's name is the backend's id at run time.

    A subclass defines `preprocess`, or `preprocess_multimethod` to see all methods at once. It must
    be imported before `to_backend` names it.
    """

    @staticmethod
    @abstractmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Turn a sub-graph into bytes. `edge_program` may be edited, its tensors may not: they are
        the model's own. Inputs and outputs keep their order at run time."""

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """As `preprocess`, for the sub-graphs of all methods: lists of equal length by method."""
        return {
            method: [
                cls.preprocess(program, specs)
                for program, specs in zip(programs, compile_specs[method], strict=True)
            ]
            for method, programs in edge_programs.items()
        }

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """A copy whose graph and signature may be edited; the tensors are shared."""
        return copy_program(edge_program)


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """A copy of graph and signature, down to control flow; tensors and metadata are shared."""
    new = copy.copy(program)
    set_parts(
        new,
        graph_module=copy_graph_module(program.graph_module),
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=dict(program.state_dict),
        constants=dict(program.constants),
    )
    return new


def copy_graph_module(graph_module: GraphModule) -> GraphModule:
    graph = Graph()
    copies: dict[Node, Node] = {}
    output: Any = graph.graph_copy(graph_module.graph, copies, return_output_node=True)
    for old, copied in copies.items():
        copied.name = (
            old.name
        )  # fx renames `input` and other names of Python, which signatures hold
    graph.output(output[0])
    graph.output_node().meta = dict(output[1].meta)
    root = torch.nn.Module()
    for name, child in graph_module.named_children():
        root.add_module(name, copy_graph_module(child) if isinstance(child, GraphModule) else child)
    for node in graph.find_nodes(op="get_attr"):
        if not hasattr(root, str(node.target)) and "." not in str(node.target):
            setattr(root, str(node.target), getattr(graph_module, str(node.target)))
    new = LazyGraphModule(root, graph)  # whose Python is written when somebody asks for it
    new.meta.update(graph_module.meta)
    return new
