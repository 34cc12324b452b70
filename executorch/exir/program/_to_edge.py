"""The steps from an exported program to the edge dialect, in order."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.graph.source_line import source_line
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.passes.compact_quantized_weights import compact_quantized_weights
from executorch.exir.passes.debug_handle_generator_pass import DebugHandleGeneratorPass
from executorch.exir.passes.lift_constants import lift_constants
from executorch.exir.passes.lower_torchao_quantization import lower_torchao_quantization
from executorch.exir.passes.make_constants_dense import make_constants_dense
from executorch.exir.passes.memory_format_ops_pass import MemoryFormatOpsPass
from executorch.exir.passes.pre_op_replace import PRE_OP_REPLACE
from executorch.exir.passes.remove_dead_code import RemoveDeadCode, remove_unused_parameters
from executorch.exir.passes.replace_aten_with_edge_pass import OpReplacePass
from executorch.exir.program._decompose import decompose
from executorch.exir.program._decompositions import beyond_torch
from executorch.exir.torch_internals import OpOverload, find_schema, set_parts
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier

Keep = Mapping[OpOverload, Callable[[torch.fx.Node], bool] | None]


def to_edge_program(
    program: ExportedProgram, config: Any, keep: Keep = MappingProxyType({})
) -> ExportedProgram:
    """`program` in the edge dialect, as a new exported program; `program` stays as it is.

    `keep` are operators not to decompose, beside those of `config.preserve_ops`, and which calls of
    them (None: all). Raises
    SpecViolationError where the result breaks the dialect and `config` has checks on, and
    RuntimeError where a dimension declared dynamic could not stay so.
    """
    dynamic = _dynamic_dims(program)
    _warn_of_training(program)
    program = lower_torchao_quantization(program)
    allowed = beyond_torch(config._core_aten_ops_exception_list or [])
    preserved = [*(config.preserve_ops or ()), *allowed]
    with _no_fixed_sizes(dynamic):
        edge = decompose(program, {**dict.fromkeys(preserved), **keep})
    _check_still_dynamic(edge, dynamic)
    compact_quantized_weights(edge)
    remove_unused_parameters(edge)
    make_constants_dense(edge)
    return convert_to_edge(edge, config, keep)


def convert_to_edge(
    program: ExportedProgram, config: Any, keep: Keep = MappingProxyType({})
) -> ExportedProgram:
    """The steps after decomposition, on `program` itself, which is returned."""
    graph_module = program.graph_module
    passes: list[GraphEdit] = [make() for make in PRE_OP_REPLACE]
    passes.append(OpReplacePass())
    if not config._skip_dim_order:
        passes.append(MemoryFormatOpsPass())
    for each in passes:
        each.edit_all(graph_module)
    lift_constants(program)
    RemoveDeadCode().edit_all(graph_module)
    DebugHandleGeneratorPass().edit_all(graph_module)
    for gm in all_graph_modules(graph_module):
        gm.recompile()
    sync_signature(program)
    verifier = EXIREdgeDialectVerifier(config, True, None, list(keep))
    set_parts(program, verifiers=[verifier])
    program.validate()
    return program


def sync_signature(program: ExportedProgram) -> None:
    """Make the signature's names those of the graph, whose order of outputs is the same."""
    outputs = program.graph_module.graph.output_node().args[0]
    for spec, node in zip(program.graph_signature.output_specs, outputs, strict=True):  # type: ignore[arg-type]
        if isinstance(node, torch.fx.Node) and spec.arg.name != node.name:
            spec.arg = type(spec.arg)(name=node.name)


@contextmanager
def _no_fixed_sizes(dynamic: Mapping[Any, str]) -> Iterator[None]:
    """RuntimeError where a decomposition decides that a dynamic size equals a number. PyTorch,
    whose guards are closed after the export, only mentions that in its log."""
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    ignored = _IgnoredGuards()
    level, propagates, others = log.level, log.propagate, log.handlers[:]
    quiet = log.getEffectiveLevel() > logging.INFO
    log.addHandler(ignored)
    if quiet:  # what is not shown otherwise stays unshown
        log.setLevel(logging.INFO)
        log.propagate = False
        for handler in others:
            log.removeHandler(handler)
    try:
        yield
    finally:
        log.handlers[:] = others
        log.propagate = propagates
        log.setLevel(level)
    for guard, held in ignored.guards:
        fixed = [s for s in dynamic if held and isinstance(guard, sympy.Eq) and guard.has(s)]
        numbers = [side for side in guard.args if getattr(side, "is_number", False)]
        if fixed and numbers:
            raise RuntimeError(
                f"to_edge: {dynamic[fixed[0]]} was declared dynamic, but a decomposition fixes it: "
                f"{guard.lhs} = {guard.rhs}; declare it static, or find the code that needs that "
                "value"
            )


class _IgnoredGuards(logging.Handler):
    """Collects what PyTorch's log says of guards that come too late: (expression, its value)."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.guards: list[tuple[Any, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("Ignored guard") and isinstance(record.args, tuple):
            self.guards.append((record.args[0], record.args[1]))


def _warn_of_training(program: ExportedProgram) -> None:
    """Name the first operator that is random or updates statistics in training mode."""
    if program.graph_signature.backward_signature is not None:
        return  # a training graph is meant so
    for node in program.graph.nodes:
        if node.op == "call_function" and _trains(node):
            path = next(reversed((node.meta.get("nn_module_stack") or {"": ("",)}).values()))[0]
            warnings.warn(
                f"module {path or 'forward'} is in training mode: {node.target} acts in the "
                f"program as in training\n  in your model: {source_line(node)}\n"
                "Call model.eval() before torch.export.export.",
                stacklevel=4,
            )
            return


def _trains(node: torch.fx.Node) -> bool:
    """Whether an argument of a dropout or a norm says that it trains."""
    schema = find_schema(node.target)
    if schema is None or not schema.name.startswith("aten::"):
        return False
    for i, argument in enumerate(schema.arguments):
        if argument.name in ("train", "training") and str(argument.type) != "Tensor":
            given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            return given is True
    return False


def _dynamic_dims(program: ExportedProgram) -> dict[Any, str]:
    """Symbol of each dynamic dimension -> where the user finds it."""
    user_inputs = {
        s.arg.name
        for s in program.graph_signature.input_specs
        if s.kind == InputKind.USER_INPUT and hasattr(s.arg, "name")
    }
    found: dict[Any, str] = {}
    for node in program.graph_module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if node.name not in user_inputs or not isinstance(value, torch.Tensor):
            continue
        for dim, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                found.setdefault(size.node.expr, f"dimension {dim} of input {node.name}")
    return found


def _check_still_dynamic(program: ExportedProgram, dynamic: dict[Any, str]) -> None:
    for node in program.graph_module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if dynamic and isinstance(value, torch.Tensor):
            for size in value.shape:
                if isinstance(size, torch.SymInt):
                    replacements = size.node.shape_env.replacements
                    for symbol, place in dynamic.items():
                        fixed = replacements.get(symbol)
                        if fixed is not None and fixed.is_number:
                            raise RuntimeError(
                                f"to_edge: {place} was declared dynamic, but the model fixes it "
                                f"to {fixed}; declare it static, or find the code that needs "
                                "that value"
                            )
                    return
