"""`to_backend`: hand programs, or parts of them, to backends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node

from executorch.exir.backend.backend_checks import (
    check_delegation,
    check_result,
    check_results,
    check_specs,
)
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult, copy_program
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG, Parts
from executorch.exir.backend.submodules import insert_lowered_call
from executorch.exir.backend.tags import BRANCH_OF
from executorch.exir.graph.pass_driver import run_passes
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph_module import is_control_flow
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.make_program import make_program
from executorch.exir.passes.debug_handle_generator_pass import generate_missing_debug_handles
from executorch.exir.passes.fold_constants import FoldConstants

__all__ = [
    "LoweredBackendModule",
    "MethodProgramsPartitionerSpec",
    "disable_validation",
    "lower_all_submodules_to_backend",
    "to_backend",
    "validation_disabled",
]


@dataclass
class MethodProgramsPartitionerSpec:
    """Programs by method, and the partitioner of each."""

    method_to_edge_program: Mapping[str, ExportedProgram]
    method_to_partitioner: Mapping[str, Partitioner]


@singledispatch
def to_backend(*args: Any) -> Any:
    """Hand programs to backends, in one of three ways; the programs given stay as they are.

    to_backend(backend_id, edge_program, compile_specs)  all of it: a LoweredBackendModule
    to_backend(edge_program, partitioner)                what the partitioner tags: a program that
                                                         calls lowered modules
    to_backend(MethodProgramsPartitionerSpec(...))       the same for several methods, which their
                                                         backends see all at once: a dict

    NotImplementedError for a backend id that no imported subclass of BackendDetails has.
    """
    raise TypeError(f"to_backend: expected a backend's name or a program, got {type(args[0])}")


@to_backend.register
def _(backend_id: str, edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> Any:
    backend = find_backend(backend_id)
    if not isinstance(edge_program, ExportedProgram):
        raise TypeError(f"to_backend: expected an ExportedProgram, got {type(edge_program)}")
    check_specs(f"to_backend({backend_id!r})", compile_specs)
    given = backend.copy_exported_program_for_preprocess(edge_program, compile_specs)
    return _lowered(
        edge_program, backend_id, compile_specs, backend.preprocess(given, compile_specs)
    )


@to_backend.register
def _(edge_program: ExportedProgram, partitioner_instance: Any) -> ExportedProgram:
    partitioner = instance_of(partitioner_instance)
    copied = copy_program(edge_program)
    FoldConstants(partitioner.constant_operands)(copied)
    graphs = list(_partitioned(copied, partitioner))
    for parts in graphs:
        for part in parts:
            backend_id, specs = part.spec
            part.lowered = to_backend(backend_id, part.program, specs)
    return _replaced(graphs)


@to_backend.register
def _(
    method_edge_program_partitioners: MethodProgramsPartitionerSpec,
) -> dict[str, ExportedProgram]:
    programs = method_edge_program_partitioners.method_to_edge_program
    partitioners = method_edge_program_partitioners.method_to_partitioner
    lowered = {name: program for name, program in programs.items() if name not in partitioners}
    chosen = {n: instance_of(partitioners[n]) for n in programs if n in partitioners}
    copied = {name: copy_program(programs[name]) for name in chosen}
    for partitioner in {id(by): by for by in chosen.values()}.values():
        views = [ProgramView(copied[name]) for name, by in chosen.items() if by is partitioner]
        run_passes(views, [FoldConstants(partitioner.constant_operands)])
    methods = {name: list(_partitioned(copied[name], by)) for name, by in chosen.items()}
    _preprocess_all(methods)
    lowered.update({name: _replaced(graphs) for name, graphs in methods.items()})
    return {name: lowered[name] for name in programs}


def find_backend(backend_id: str) -> type[BackendDetails]:
    """The imported subclass of BackendDetails of that name."""
    pending = [BackendDetails]
    found = []
    while pending:
        for backend in pending.pop().__subclasses__():
            if backend.__name__ == backend_id:
                return backend
            found.append(backend.__name__)
            pending.append(backend)
    raise NotImplementedError(
        f"Backend {backend_id} was not found: import the module that defines it. Known are "
        f"{sorted(found)}"
    )


def instance_of(partitioner: Any) -> Partitioner:
    """Where a class is given, its instance; TypeError where it is no partitioner."""
    found = partitioner() if isinstance(partitioner, type) else partitioner
    if not isinstance(found, Partitioner):
        raise TypeError(f"partitioner: expected a Partitioner, or its class, found {found!r:.80}")
    return found


def _lowered(
    program: ExportedProgram,
    backend_id: str,
    compile_specs: list[CompileSpec],
    result: PreprocessResult,
) -> LoweredBackendModule:
    check_result(backend_id, result)
    module = LoweredBackendModule(
        program, backend_id, result.processed_bytes, compile_specs, result.data_store_output
    )
    module.meta = {
        "debug_handle_map": result.debug_handle_map,
        "_delegate_info_meta": result._delegate_info_meta,
    }
    return module


def _preprocess_all(methods: dict[str, list[Parts]]) -> None:
    """Call every backend once, with its parts of all methods."""
    by_backend: dict[str, dict[str, list[Any]]] = {}
    for name, graphs in methods.items():
        for parts in graphs:
            for part in parts:
                by_backend.setdefault(part.spec.backend_id, {}).setdefault(name, []).append(part)
    for backend_id, chosen in by_backend.items():
        given = {
            name: [(part.program, part.spec.compile_specs) for part in of_method]
            for name, of_method in chosen.items()
        }
        lowered = _lowered_together(backend_id, given)
        for name, of_method in chosen.items():
            for part, module in zip(of_method, lowered[name], strict=True):
                part.lowered = module


def _lowered_together(
    backend_id: str, given: dict[str, list[tuple[ExportedProgram, list[CompileSpec]]]]
) -> dict[str, list[LoweredBackendModule]]:
    """One call of the backend with the programs of all methods, and the specs of each program."""
    backend = find_backend(backend_id)
    copies = {
        name: [backend.copy_exported_program_for_preprocess(*pair) for pair in pairs]
        for name, pairs in given.items()
    }
    specs = {name: [spec for _, spec in pairs] for name, pairs in given.items()}
    results = backend.preprocess_multimethod(copies, specs)
    check_results(backend_id, results, copies)
    return {
        name: [
            _lowered(program, backend_id, spec, result)
            for (program, spec), result in zip(pairs, results[name], strict=True)
        ]
        for name, pairs in given.items()
    }


def lower_all_submodules_to_backend(
    backend_id: str,
    method_to_submodules_nodes: dict[str, list[Node]],
    method_to_tagged_edge_program: dict[str, ExportedProgram],
) -> None:
    """Hand the submodules that the methods' graphs call to one backend, all at once, and turn
    their calls into delegate calls. The programs are changed in place. Each node's `meta` has:

    submodule_program  from `create_exported_program_from_submodule`
    compile_spec       the list of CompileSpecs for the backend
    toplevel_input_specs_to_delete, toplevel_output_specs_to_delete
                       that function's other two results: what the delegate owns
    """
    nodes = {name: list(calls) for name, calls in method_to_submodules_nodes.items()}
    given = {
        name: [(node.meta["submodule_program"], node.meta["compile_spec"]) for node in calls]
        for name, calls in nodes.items()
    }
    lowered = _lowered_together(backend_id, given)
    for name, calls in nodes.items():
        for node, module in zip(calls, lowered[name], strict=True):
            insert_lowered_call(method_to_tagged_edge_program[name], node, module)


def _partitioned(program: ExportedProgram, partitioner: Partitioner) -> Iterator[Parts]:
    """The parts of the program's graph, then those of the control flow in it that is no part."""
    parts = Parts(program, _tagged(program, partitioner).partition_tags)
    yield parts
    for node in program.graph_module.graph.nodes:
        if is_control_flow(node) and node not in parts.part_of:
            for argument in node.all_input_nodes:
                branch = getattr(program.graph_module, str(argument.target), None)
                if argument.op == "get_attr" and isinstance(branch, GraphModule):
                    branch.meta[BRANCH_OF] = node.target
                    yield from _partitioned(_program_of_branch(branch, program), partitioner)
                    del branch.meta[BRANCH_OF]


def _tagged(program: ExportedProgram, partitioner: Partitioner) -> PartitionResult:
    nodes = list(program.graph_module.graph.nodes)
    before = [(n, n.target, n.args, n.kwargs) for n in nodes]
    result = partitioner(program)
    if not isinstance(result, PartitionResult):
        raise TypeError(f"{partitioner}.partition: expected a PartitionResult, got {type(result)}")
    tagged = result.tagged_exported_program
    if tagged is not program:
        given = list(tagged.graph_module.graph.nodes)
        if [n.name for n in given] != [n.name for n in nodes]:
            raise AssertionError(f"{partitioner} changed the graph: a partitioner only tags nodes")
        for node, other in zip(nodes, given, strict=True):
            if TAG in other.meta:
                node.meta[TAG] = other.meta[TAG]
    if before != [(n, n.target, n.args, n.kwargs) for n in program.graph_module.graph.nodes]:
        raise AssertionError(f"{partitioner} changed the graph: a partitioner only tags nodes")
    if not isinstance(result.partition_tags, Mapping):
        raise AssertionError(
            f"{partitioner}.partition: the result needs partition_tags, a mapping from each tag to "
            f"its DelegationSpec; found {result.partition_tags!r}"
        )
    check_delegation(f"{partitioner}.partition", result.partition_tags)
    for node in nodes:
        tag = node.meta.get(TAG)
        if node.op == "call_function" and tag is not None and tag not in result.partition_tags:
            raise ValueError(
                f"{partitioner}.partition: node {node} has the tag {tag!r}, which partition_tags "
                f"does not have; it has {sorted(map(str, result.partition_tags))}"
            )
    return result


def _program_of_branch(branch: GraphModule, program: ExportedProgram) -> ExportedProgram:
    """A sub-graph of control flow as a program: all its inputs are given, it owns nothing."""
    graph: Graph = branch.graph
    results: Any = graph.output_node().args[0]
    results = results if isinstance(results, (list, tuple)) else [results]  # a loop's condition
    return make_program(
        branch,
        ExportGraphSignature(
            [
                InputSpec(InputKind.USER_INPUT, TensorArgument(name=n.name), None)
                for n in graph.find_nodes(op="placeholder")
            ],
            [
                OutputSpec(
                    OutputKind.USER_OUTPUT, TensorArgument(name=getattr(n, "name", "")), None
                )
                for n in results
            ],
        ),
        {},
        {},
        program,
    )


def _replaced(graphs: list[Parts]) -> ExportedProgram:
    for parts in graphs:
        parts.replace()
        remove_used_metadata(parts.graph)
    program = graphs[0].program
    generate_missing_debug_handles(program)  # of the calls of delegates
    return program


def remove_used_metadata(graph: Graph) -> None:
    """Drop the tags, which mean nothing to the next partitioner."""
    for node in graph.nodes:
        node.meta.pop(TAG, None)


def disable_validation() -> None:
    """For compatibility: programs are checked when they are made, not by `to_backend`."""


@contextlib.contextmanager
def validation_disabled() -> Iterator[None]:
    """As `disable_validation`, for a block."""
    yield
