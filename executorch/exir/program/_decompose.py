"""Step one: composite operators become core ones, views become copies, writes become values."""

from __future__ import annotations

import copy
import logging
import operator
from collections.abc import Mapping, Set
from functools import cache
from types import MappingProxyType

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind
from torch.fx import Graph, GraphModule, Node

from executorch.exir import recurrent
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import copy_variant
from executorch.exir.program._decompositions import core_table
from executorch.exir.program._embedding_max_norm import scale_rows_read
from executorch.exir.program._shared_buffers import (
    hold_written_parameters_in_buffers,
    name_tensors_once,
    refuse_buffers_that_overlap,
)
from executorch.exir.program._splice import Splicer, Wanted
from executorch.exir.program._template import NeedsFunctionalization, Table, no_cpu_kernels
from executorch.exir.torch_internals import OpOverload, detect_fake_mode, schema_of, set_parts

log = logging.getLogger(__name__)


@cache
def _cached_table() -> Table:
    return core_table()


def decompose(
    program: ExportedProgram, keep: Mapping[OpOverload, Wanted | None] = MappingProxyType({})
) -> ExportedProgram:
    """`program` in core operators, as a new program; operators in `keep` stay: all calls of them,
    or those that their function wants.

    Programs with control flow, recurrent layers of many steps, mutated inputs or writes through
    views go through `ExportedProgram.run_decompositions`; all others are put together from
    templates, with the same result in a fraction of the time.
    """
    for op in keep:
        if schema_of(op).is_mutable or copy_variant(op) is not None:
            raise RuntimeError(
                f"preserve_ops: {op} writes or returns a view; it cannot be preserved"
            )
    program = scale_rows_read(program)
    try:
        return _spliced(program, _cached_table(), keep)
    except NeedsFunctionalization as reason:
        log.info("decomposing through run_decompositions: %s", reason)
        return _by_torch(name_tensors_once(program), keep)


def _by_torch(
    program: ExportedProgram, keep: Mapping[OpOverload, Wanted | None]
) -> ExportedProgram:
    """torch keeps all calls of an operator or none. Regions (autocast, no_grad) are part of the
    graph afterwards, so that single calls can be asked for; beside control flow they cannot, and an
    operator stays there if all its calls are wanted."""
    new = _run_decompositions(program, set(keep))
    refused = {op for op, wanted in keep.items() if wanted and not _all(new, op, wanted)}
    if not refused:
        return new
    try:
        return _spliced(new, _cached_table(), keep)
    except NeedsFunctionalization:
        return _run_decompositions(program, keep.keys() - refused)


def _run_decompositions(program: ExportedProgram, kept: Set[OpOverload]) -> ExportedProgram:
    # Anew: it knows all custom operators registered by now.
    table = {**core_table(), **recurrent.decompositions()}
    try:
        with no_cpu_kernels():
            new = program.run_decompositions({k: v for k, v in table.items() if k not in kept})
    except AssertionError:  # all that torch says of writes to memory of two inputs
        refuse_buffers_that_overlap(program)
        raise
    set_parts(new, state_dict=dict(new.state_dict), constants=dict(new.constants))
    hold_written_parameters_in_buffers(new)
    return new


def _all(program: ExportedProgram, op: OpOverload, wanted: Wanted) -> bool:
    first, *branches = all_graph_modules(program.graph_module)
    calls = first.graph.find_nodes(op="call_function", target=op)
    inside = (n for b in branches for n in b.graph.find_nodes(op="call_function", target=op))
    return all(map(wanted, calls)) and all(wanted(_beside_values(node)) for node in inside)


def _beside_values(call: Node) -> Node:
    """The call of a branch, whose inputs are values, constants of the program among them."""
    graph = Graph()

    def value(node: Node) -> Node:
        shown = graph.call_function(operator.getitem, (None, node.name))
        shown.meta = node.meta
        return shown

    return graph.node_copy(call, value)


def decompose_only(program: ExportedProgram, table: Table) -> ExportedProgram:
    """`program` with the calls of the table's operators replaced, as a new program. Views stay
    views and all other calls as they are, unless one writes to an operand: then all of the program
    is made functional by torch."""
    try:
        return _spliced(program, table, {}, only_table=True)
    except NeedsFunctionalization as reason:
        log.info("decomposing through run_decompositions: %s", reason)
        return program.run_decompositions(dict(table))


def _spliced(
    program: ExportedProgram,
    table: Table,
    keep: Mapping[OpOverload, Wanted | None],
    only_table: bool = False,
) -> ExportedProgram:
    signature = program.graph_signature
    _refuse_what_needs_torch(program, keep.keys())
    old = program.graph_module
    fake_mode = detect_fake_mode([n.meta.get("val") for n in old.graph.nodes])
    if fake_mode is None:
        raise NeedsFunctionalization("the program has no fake values")
    graph = Splicer(old, table, keep, fake_mode, only_table).run()
    new = copy.copy(program)
    set_parts(new, graph_module=GraphModule(torch.nn.Module(), graph))
    new.graph_module.meta.update(old.meta)
    set_parts(
        new,
        state_dict=dict(program.state_dict),
        constants=dict(program.constants),
        range_constraints=dict(program.range_constraints),
        graph_signature=copy.deepcopy(signature),
    )
    ProgramView(new).update_outputs()
    return new


def _refuse_what_needs_torch(program: ExportedProgram, kept: Set[OpOverload]) -> None:
    signature: ExportGraphSignature = program.graph_signature
    for node in program.graph.nodes:
        if recurrent.becomes_loop(node) and node.target not in kept:
            raise NeedsFunctionalization(f"{node}, a recurrent layer of many steps")
    if signature.backward_signature is not None:
        raise NeedsFunctionalization("a training graph")
    if any(s.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN) for s in signature.input_specs):
        raise NeedsFunctionalization("inputs that are no tensors")
    # A functional graph gives the next values of buffers; one that writes them is refused where it
    # does.
    if any(
        s.kind not in (OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION)
        for s in signature.output_specs
    ):
        raise NeedsFunctionalization("outputs that are no results")
    for tensor in program.state_dict.values():
        if type(tensor) not in (Tensor, torch.nn.Parameter, torch.nn.Buffer):
            raise NeedsFunctionalization(f"a {type(tensor).__name__} among the weights")
