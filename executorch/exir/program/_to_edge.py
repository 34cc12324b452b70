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

from executorch.exir.graph.pass_driver import Pass, run_passes
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.graph.source_line import source_line
from executorch.exir.passes.compact_quantized_weights import CompactQuantizedWeights
from executorch.exir.passes.debug_handle_generator_pass import DebugHandleGeneratorPass
from executorch.exir.passes.lift_constants import LiftConstants
from executorch.exir.passes.lower_torchao_quantization import lower_torchao_quantization
from executorch.exir.passes.make_constants_dense import MakeConstantsDense
from executorch.exir.passes.patterns import PRE_OP_REPLACE, MemoryFormatOpsPass, OpReplacePass
from executorch.exir.passes.remove_dead_code import RemoveDeadCode, RemoveUnusedParameters
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
    run_passes([ProgramView(edge, Dialect.ATEN)], _passes(config))
    set_parts(edge, verifiers=[EXIREdgeDialectVerifier(config, True, None, list(keep))])
    edge.validate()
    return edge


def _passes(config: Any) -> list[Pass]:
    """From the core ATen operators to the edge dialect, in order."""
    return [
        CompactQuantizedWeights(),
        RemoveUnusedParameters(),
        MakeConstantsDense(),
        *(make() for make in PRE_OP_REPLACE),
        OpReplacePass(),
        *([] if config._skip_dim_order else [MemoryFormatOpsPass()]),
        LiftConstants(),
        RemoveDeadCode(),
        DebugHandleGeneratorPass(),
    ]


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
