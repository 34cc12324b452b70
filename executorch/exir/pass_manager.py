"""Runs lists of passes over graph modules and exported programs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputKind
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult
from torch.fx.passes.infra.pass_manager import PassManager as _TorchPassManager

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.pass_base import (
    ExportedProgramPassBase,
    ExportedProgramPassResult,
    PassType,
)
from executorch.exir.passes.debug_handle_generator_pass import generate_missing_debug_handles
from executorch.exir.passes.lift_constants import lift_constants
from executorch.exir.torch_internals import set_parts

PassList = Sequence[PassType] | Sequence[Sequence[PassType]]


def _flat(passes: Any) -> list[PassType]:
    if passes is None:
        return []
    flat: list[PassType] = []
    for each in passes:
        flat.extend(_flat(each) if isinstance(each, (list, tuple)) else [each])
    return flat


def _result(pass_: PassType, given: GraphModule) -> PassResult:
    """Run a pass on a graph module; a pass that returns None edited it in place."""
    result = pass_(given)
    if result is None:
        return PassResult(given, True)
    if not isinstance(result, PassResult):
        raise TypeError(f"{pass_}: a pass returns PassResult or None, got {type(result)}")
    return result


def _check_graph(module: GraphModule) -> None:
    """Recompile; ExportError for calls that an exported graph does not have."""
    methods = module.graph.find_nodes(op="call_method")
    if methods:
        raise ExportError(
            ExportErrorType.NOT_SUPPORTED,
            f"call_method `{methods[0]}` is not part of an exported graph; call an operator",
        )
    module.recompile()
    module.graph.lint()


class PassManager(_TorchPassManager):
    """Runs `passes` (a list, or one of lists) in order, `steps` times or until nothing changes."""

    def __init__(
        self,
        passes: PassList | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
        steps: int = 1,
    ) -> None:
        super().__init__(
            passes=_flat(passes),
            constraints=[],
            steps=steps,
            run_checks_after_each_pass=run_checks_after_each_pass,
            suppress_check_failures=suppress_check_failures,
        )

    def check(self, module: torch.nn.Module) -> None:
        """Recompile `module` and check that its graph is well formed."""
        if not isinstance(module, GraphModule):
            raise TypeError(f"PassManager: expected torch.fx.GraphModule, got {type(module)}")
        _check_graph(module)

    def __call__(self, module: GraphModule) -> PassResult:  # type: ignore[override]
        modified = False
        for _ in range(self.steps):
            changed = False
            for each in self.passes:
                result = _result(each, module)
                module = result.graph_module
                changed |= result.modified
                if self.run_checks_after_each_pass:
                    self.check(module)
            modified |= changed
            if not changed:
                break
        return PassResult(module, modified)


class ExportedProgramPassManager(_TorchPassManager):
    """As PassManager, over an exported program: passes may also be ExportedProgramPassBase."""

    def __init__(
        self,
        passes: PassList | None = None,
        constraints: list[Callable[[Callable[..., Any], Callable[..., Any]], bool]] | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
        steps: int = 1,
    ) -> None:
        super().__init__(
            passes=_flat(passes),
            constraints=constraints or [],
            steps=steps,
            run_checks_after_each_pass=run_checks_after_each_pass,
            suppress_check_failures=suppress_check_failures,
        )

    def check(self, exported_program: ExportedProgram) -> None:  # type: ignore[override]
        """Recompile the program's graph and verify it."""
        _check_graph(exported_program.graph_module)
        exported_program.validate()

    def __call__(  # type: ignore[override]
        self, exported_program: ExportedProgram, override_verifiers: list[type] | None = None
    ) -> ExportedProgramPassResult:
        program, modified = exported_program, False
        for _ in range(self.steps):
            changed = False
            for each in self.passes:
                program, did = run_pass(program, each)
                changed |= did
                if self.run_checks_after_each_pass:
                    self.check(program)
            modified |= changed
            if not changed:
                break
        if override_verifiers is not None:
            set_parts(program, verifiers=override_verifiers)
        program.validate()
        return ExportedProgramPassResult(program, modified)


def run_pass(program: ExportedProgram, pass_: PassType) -> tuple[ExportedProgram, bool]:
    """Run one pass of either kind; a new program if it made a new graph, and whether it changed."""
    if isinstance(pass_, ExportedProgramPassBase):
        outcome = pass_(program)
        return outcome.exported_program, outcome.modified
    result = _result(pass_, program.graph_module)
    if not result.modified and result.graph_module is program.graph_module:
        return program, False
    return with_graph_module(program, result.graph_module), True


def run_passes(
    program: ExportedProgram, passes: Iterable[PassType], verifier: type
) -> ExportedProgram:
    """Run `passes` over `program` and verify the result under `verifier`."""
    if isinstance(passes, _TorchPassManager):
        before = passes
        passes = [lambda gm: before(gm)] if before.steps > 1 else before.passes
    for each in _flat(passes):
        program, _ = run_pass(program, each)
    set_parts(program, verifiers=[verifier])
    program.validate()
    return program


def with_graph_module(program: ExportedProgram, graph_module: GraphModule) -> ExportedProgram:
    """`program` with a graph that a pass made of its own: same inputs and outputs, in order.

    Constants the pass attached become inputs, and nodes without a debug handle get one.
    """
    new = copy.copy(program)
    set_parts(
        new,
        graph_module=graph_module,
        state_dict=dict(program.state_dict),
        graph_signature=_renamed_signature(program.graph_signature, graph_module),
    )
    if lift_constants(new):
        graph_module.recompile()
    generate_missing_debug_handles(new)
    return new


def _renamed_signature(old: ExportGraphSignature, gm: GraphModule) -> ExportGraphSignature:
    placeholders = gm.graph.find_nodes(op="placeholder")
    outputs: Any = gm.graph.output_node().args[0]
    if len(placeholders) != len(old.input_specs) or len(outputs) != len(old.output_specs):
        raise RuntimeError(
            f"a pass changed the number of inputs or outputs: the signature has "
            f"{len(old.input_specs)} and {len(old.output_specs)}, the graph {len(placeholders)} "
            f"and {len(outputs)}; write an ExportedProgramPassBase to change both"
        )
    renamed = copy.deepcopy(old)
    new_names: dict[str, str] = {}
    for given, node in zip(renamed.input_specs, placeholders, strict=True):
        new_names[given.arg.name] = node.name
        given.arg.name = node.name
    for result, node in zip(renamed.output_specs, outputs, strict=True):
        if isinstance(node, torch.fx.Node):
            result.arg.name = node.name
        if result.kind == OutputKind.USER_INPUT_MUTATION:
            result.target = new_names[str(result.target)]
    return renamed
