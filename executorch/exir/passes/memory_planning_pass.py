from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.memory_planning import (
    MemoryPlanningAlgorithmSuite,
    apply_algo,
    check_no_conflict,
    collect_specs_from_nodes,
    greedy,
    naive,
)
from executorch.exir.tensor import TensorSpec, calculate_aligned_num_bytes

_log = logging.getLogger(__name__)

_NAMED = {"greedy": greedy, "naive": naive}

Algorithm = Callable[..., Any]

# Bytes; no page of memory is larger.
_MOST_ALIGNED = 1 << 30

# Arena of the mutable buffers that several methods share.
_SHARED_ARENA = 2


@dataclass
class ArenaReport:
    """One arena of one planned method."""

    mem_id: int
    size: int  # bytes
    lower_bound: int  # bytes; the most that is alive at once, which no plan goes below
    tensors: int


class MemoryPlanningPass(Pass):
    """Give every tensor of a method its place in the arenas.

    memory_planning_algo   None: the smallest of several placements; "greedy" or "naive"; a function
                           (alignment, specs, graph_module, graph_signature, extra_padding) that
                           returns a MemoryAlgoResult, or writes into the specs and returns the
                           arena sizes; a MemoryPlanningAlgorithmSuite
    allow_lifetime_and_storage_overlap
                           do not check that tensors alive together lie apart
    alloc_graph_input, alloc_graph_output, alloc_mutable_buffers
                           False: the caller provides that memory at run time
    share_mutable_buffers  buffers that any method mutates lie in arena 2, the same place in all
    alignment              bytes, of every tensor
    reuse_storage          elementwise operators may write where an operand lies that nothing reads
                           later, where that makes the arenas smaller. Default: only if no
                           algorithm is named.

    Requires  specs with numbers for extents; must be the last pass.
    Ensures   `graph_module.meta["non_const_buffer_sizes"]`: [0, bytes of arena 1, ...]. `report`
              holds one list of ArenaReports per planned graph, in planning order.
    """

    def __init__(
        self,
        memory_planning_algo: None | str | Algorithm = None,
        allow_lifetime_and_storage_overlap: bool = False,
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = 16,
        reuse_storage: bool | None = None,
    ) -> None:
        self.memory_planning_algo = _algorithm(memory_planning_algo)
        self.allow_lifetime_and_storage_overlap = allow_lifetime_and_storage_overlap
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers
        self.share_mutable_buffers = share_mutable_buffers
        if not isinstance(alignment, int):
            raise TypeError(
                f"MemoryPlanningPass: alignment: expected a number of bytes, found {alignment!r}"
            )
        if not 1 <= alignment <= _MOST_ALIGNED or alignment & (alignment - 1):
            raise ValueError(
                f"MemoryPlanningPass: alignment {alignment} is no power of two up to "
                f"{_MOST_ALIGNED}"
            )
        self.alignment = alignment
        self.reuse_storage = (
            memory_planning_algo is None if reuse_storage is None else reuse_storage
        )
        self.enable_non_cpu_memory_planning = False  # `to_executorch` says
        self.report: list[list[ArenaReport]] = []
        self._methods: list[tuple[GraphModule, ExportGraphSignature]] = []

    def edit(self, view: ProgramView) -> bool:
        return self.run(view.graph_module, view.signature).modified

    def run(
        self, graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None
    ) -> PassResult:
        plan_buffers = self.alloc_mutable_buffers and not self.share_mutable_buffers
        sizes = apply_algo(
            self.memory_planning_algo,
            graph_module,
            self.alignment,
            graph_signature,
            self.alloc_graph_input,
            self.alloc_graph_output,
            plan_buffers,
            self.enable_non_cpu_memory_planning,
            reuse_storage=self.reuse_storage,
        )
        planned = list(
            collect_specs_from_nodes(
                graph_module.graph.nodes,
                graph_signature,
                ignore_graph_input=not self.alloc_graph_input,
                ignore_graph_output=not self.alloc_graph_output,
                ignore_mutable_buffers=not plan_buffers,
            )
        ) + graph_module.meta.pop("regions", [])
        if not self.allow_lifetime_and_storage_overlap:
            check_no_conflict(planned)
        _check_bounds(planned, sizes)
        graph_module.meta["non_const_buffer_sizes"] = sizes
        self._add_report(planned, sizes)
        if self.share_mutable_buffers and graph_signature is not None:
            self._methods.append((graph_module, graph_signature))
        return PassResult(graph_module, True)

    def run_multimethod(self) -> None:
        """Place the mutable buffers that the methods share; called after `run` for every method."""
        methods, self._methods = self._methods, []
        mutated = {
            spec.target
            for _, signature in methods
            for spec in signature.output_specs
            if spec.kind is OutputKind.BUFFER_MUTATION
        }
        offsets: dict[str, int] = {}
        end = 0
        for graph_module, signature in methods:
            for name, spec in _buffers(graph_module, signature).items():
                if name in mutated:
                    if name not in offsets:
                        offsets[name] = end
                        end += calculate_aligned_num_bytes(spec.nbytes(), self.alignment)
                    spec.const = False
                    spec.mem_id, spec.mem_offset = _SHARED_ARENA, offsets[name]
        for graph_module, _ in methods:
            sizes = graph_module.meta["non_const_buffer_sizes"]
            if len(sizes) != _SHARED_ARENA:
                raise ExportError(
                    ExportErrorType.NOT_SUPPORTED,
                    f"share_mutable_buffers needs arena {_SHARED_ARENA}, but the method plans "
                    f"arenas of sizes {sizes}",
                )
            if end > 0:
                sizes.append(end)

    def _add_report(self, planned: list[TensorSpec], sizes: list[int]) -> None:
        from executorch.exir import _native

        arenas = []
        for mem_id in range(1, len(sizes)):
            blocks = [
                (s.allocated_memory, *s.lifetime) for s in planned if (s.mem_id or 1) == mem_id
            ]
            arenas.append(
                ArenaReport(mem_id, sizes[mem_id], _native.lower_bound(blocks), len(blocks))
            )
            _log.info("memory planning: %s", arenas[-1])
        self.report.append(arenas)


def _algorithm(choice: None | str | Algorithm) -> Algorithm:
    if choice is None:
        return MemoryPlanningAlgorithmSuite()
    if isinstance(choice, str):
        if choice not in _NAMED:
            raise ValueError(
                f"MemoryPlanningPass: no algorithm {choice!r}; there are {sorted(_NAMED)}"
            )
        return _NAMED[choice]
    if not callable(choice):
        raise TypeError(f"MemoryPlanningPass: {choice!r} is neither a name nor callable")
    return choice


def _check_bounds(planned: list[TensorSpec], sizes: list[int]) -> None:
    for spec in planned:
        if spec.mem_offset is None or spec.mem_id is None:
            raise ExportError(
                ExportErrorType.VIOLATION_OF_SPEC,
                f"the memory planning algorithm gave no place to {spec.debug()}",
            )
        if spec.mem_id >= len(sizes) or spec.mem_offset + spec.nbytes() > sizes[spec.mem_id]:
            raise ExportError(
                ExportErrorType.VIOLATION_OF_SPEC,
                f"the memory planning algorithm placed {spec.debug()} beyond the arenas {sizes}",
            )


def _buffers(graph_module: GraphModule, signature: ExportGraphSignature) -> dict[str, TensorSpec]:
    """Specs of the method's buffers by name."""
    nodes: dict[str, Node] = {n.name: n for n in graph_module.graph.find_nodes(op="placeholder")}
    return {
        str(s.target): nodes[s.arg.name].meta["spec"]
        for s in signature.input_specs
        if s.kind is InputKind.BUFFER and s.arg.name in nodes
    }
