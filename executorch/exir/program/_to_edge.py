"""The steps from an exported program to the edge dialect, in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.export import ExportedProgram

from executorch.exir.graph.dynamic_sizes import watch_sizes
from executorch.exir.graph.pass_driver import Pass, run_passes
from executorch.exir.graph.program_view import Dialect, ProgramView, named_as_its_graph
from executorch.exir.graph.source_line import source_line
from executorch.exir.passes.compact_quantized_weights import CompactQuantizedWeights
from executorch.exir.passes.debug_handle_generator_pass import DebugHandleGeneratorPass
from executorch.exir.passes.drop_expansions import DropExpansions
from executorch.exir.passes.lift_constants import LiftConstants
from executorch.exir.passes.lower_torchao_quantization import lower_torchao_quantization
from executorch.exir.passes.make_constants_dense import MakeConstantsDense
from executorch.exir.passes.patterns import PRE_OP_REPLACE, MemoryFormatOpsPass, OpReplacePass
from executorch.exir.passes.remove_dead_code import RemoveDeadCode, RemoveUnusedParameters
from executorch.exir.program._cross_attention_caches import write_cross_attention_caches
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
    them (None: all). Raises SpecViolationError where the result breaks the dialect and `config` has
    checks on, and RuntimeError where a dimension declared dynamic could not stay so.
    """
    program = named_as_its_graph(program)
    dynamic = ProgramView(program).dynamic_dims
    _warn_of_training(program)
    program = lower_torchao_quantization(write_cross_attention_caches(program))
    allowed = beyond_torch(config._core_aten_ops_exception_list or [])
    preserved = [*(config.preserve_ops or ()), *allowed]
    with watch_sizes(dynamic) as sizes:
        edge = decompose(program, {**dict.fromkeys(preserved), **keep})
        sizes.check("a decomposition")
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
        DropExpansions(),
        OpReplacePass(),
        *([] if config._skip_dim_order else [MemoryFormatOpsPass()]),
        LiftConstants(),
        RemoveDeadCode(),
        DebugHandleGeneratorPass(),
    ]


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
