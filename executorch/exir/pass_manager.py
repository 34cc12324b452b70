"""Runs what users give as passes, alone or in lists, over graph modules and exported programs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult
from torch.fx.passes.infra.pass_manager import PassManager as _TorchPassManager

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.pass_driver import ExportedProgramPassResult, Pass, run_passes
from executorch.exir.graph.program_view import ProgramView, renamed_signature
from executorch.exir.pass_base import ExportedProgramPassBase, ExportPass, PassType
from executorch.exir.passes.debug_handle_generator_pass import generate_missing_debug_handles
from executorch.exir.passes.lift_constants import LiftConstants
from executorch.exir.torch_internals import set_parts

PassList = Sequence[PassType] | Sequence[Sequence[PassType]]


class UserPass(Pass):
    """A pass that a user gave, as a Pass. It may return a new graph or edit the given one; the
    result becomes a program again.

    given  an ExportPass or another PassBase, a function of a graph module that gives a PassResult
           or None, an ExportedProgramPassBase, or a list of such in a pass manager of torch's
    Ensures  constants that it attached are inputs, and nodes without a debug handle get one.
    """

    def __init__(self, given: PassType) -> None:
        self.given = given

    def __str__(self) -> str:
        return type(self.given).__name__

    def edit(self, view: ProgramView) -> bool:
        program = view.program
        assert program is not None
        if isinstance(self.given, ExportedProgramPassBase):
            outcome = self.given(program)
            view.program = outcome.exported_program
            return bool(outcome.modified)
        if isinstance(self.given, Pass) and as_pass(self.given) is self.given:
            outcome = self.given(copy.copy(program))
            program, graph_module = outcome.exported_program, outcome.exported_program.graph_module
            modified = outcome.modified
        else:
            if not isinstance(self.given, ExportPass):  # it may run the code
                view.graph_module.recompile()
            result = _result(self.given, view.graph_module)
            modified, graph_module = result.modified, result.graph_module
        if not modified and graph_module is view.graph_module:
            return False
        view.program = with_graph_module(program, graph_module)
        return True


def as_pass(given: PassType) -> Pass:
    """`given` itself if it is a Pass with the `call` of `Pass`; else a `UserPass` of it."""
    own = isinstance(given, Pass) and type(given).call is Pass.call
    return given if own else UserPass(given)  # type: ignore[return-value]


def flat_passes(passes: Any) -> list[PassType]:
    """A list of passes, or of such lists, as one. TypeError where something is no pass."""
    if passes is None:
        return []
    if not isinstance(passes, Iterable) or isinstance(passes, (str, Mapping)):
        raise TypeError(f"passes: expected a list of them, found {passes!r:.80}")
    flat: list[PassType] = []
    for each in passes:
        if isinstance(each, (list, tuple)):
            flat += flat_passes(each)
        elif callable(each) and not isinstance(each, type):
            flat.append(each)
        else:
            raise TypeError(
                "passes: expected an ExportPass, another pass or a function of a graph module, "
                f"found {each!r:.80}"
            )
    return flat


def _result(pass_: PassType, given: GraphModule) -> PassResult:
    """Run a pass on a graph module; a pass that returns None edited it in place."""
    result = pass_(given)
    if result is None:
        return PassResult(given, True)
    if not isinstance(result, PassResult):
        raise TypeError(f"{pass_}: a pass returns PassResult or None, got {type(result)}")
    if not isinstance(result.graph_module, GraphModule):
        raise TypeError(
            f"{pass_}: expected a PassResult with a GraphModule, found {result.graph_module!r:.80}"
        )
    return result


def run_pass(program: ExportedProgram, pass_: PassType) -> tuple[ExportedProgram, bool]:
    """Run one pass over a program: a new program if it changed anything, and whether it did."""
    view = ProgramView(program)
    modified = run_passes([view], [UserPass(pass_)])
    assert view.program is not None
    return view.program, modified


def run_user_passes(
    program: ExportedProgram, passes: Iterable[PassType], verifier: type
) -> ExportedProgram:
    """Run `passes` over `program` and verify the result under `verifier`."""
    if isinstance(passes, _TorchPassManager):
        before = passes
        passes = [lambda gm: before(gm)] if before.steps > 1 else before.passes
    for each in flat_passes(passes):
        program, _ = run_pass(program, each)
    set_parts(program, verifiers=[verifier])
    program.validate()
    return program


def with_graph_module(program: ExportedProgram, graph_module: GraphModule) -> ExportedProgram:
    """`program` with a graph that a pass made of its own: same inputs and outputs, in order.

    Constants the pass attached become inputs, and nodes without a debug handle get one.
    """
    new = copy.copy(program)
    signature = renamed_signature(program.graph_signature, graph_module)
    set_parts(new, graph_module=graph_module, graph_signature=signature)
    run_passes([ProgramView(new)], [LiftConstants()])
    generate_missing_debug_handles(new)
    return new


class _Manager(_TorchPassManager):
    """Runs `passes` in order, `steps` times or until nothing changes."""

    def __init__(
        self,
        passes: PassList | None = None,
        constraints: list[Callable[[Callable[..., Any], Callable[..., Any]], bool]] | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
        steps: int = 1,
    ) -> None:
        super().__init__(
            passes=flat_passes(passes),
            constraints=constraints or [],
            steps=steps,
            run_checks_after_each_pass=run_checks_after_each_pass,
            suppress_check_failures=suppress_check_failures,
        )

    def _run(self, given: Any, step: Callable[[Any, PassType], tuple[Any, bool]]) -> Any:
        """(result, whether anything changed)."""
        modified = False
        for _ in range(self.steps):
            changed = False
            for each in self.passes:
                given, did = step(given, each)
                changed |= did
                if self.run_checks_after_each_pass:
                    self.check(given)
            modified |= changed
            if not changed:
                break
        return given, modified


class PassManager(_Manager):
    """Runs `passes` (a list, or one of lists) in order, `steps` times or until nothing changes."""

    def __init__(
        self,
        passes: PassList | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
        steps: int = 1,
    ) -> None:
        super().__init__(passes, None, run_checks_after_each_pass, suppress_check_failures, steps)

    def check(self, module: torch.nn.Module) -> None:
        """Recompile `module` and check that its graph is well formed."""
        if not isinstance(module, GraphModule):
            raise TypeError(f"PassManager: expected torch.fx.GraphModule, got {type(module)}")
        _check_graph(module)

    def __call__(self, module: GraphModule) -> PassResult:  # type: ignore[override]
        def step(given: GraphModule, each: PassType) -> tuple[GraphModule, bool]:
            result = _result(each, given)
            return result.graph_module, result.modified

        return PassResult(*self._run(module, step))


class ExportedProgramPassManager(_Manager):
    """As PassManager, over an exported program: passes may also be ExportedProgramPassBase."""

    def check(self, exported_program: ExportedProgram) -> None:  # type: ignore[override]
        """Recompile the program's graph and verify it."""
        _check_graph(exported_program.graph_module)
        exported_program.validate()

    def __call__(  # type: ignore[override]
        self, exported_program: ExportedProgram, override_verifiers: list[type] | None = None
    ) -> ExportedProgramPassResult:
        program, modified = self._run(exported_program, run_pass)
        if override_verifiers is not None:
            set_parts(program, verifiers=override_verifiers)
        program.validate()
        return ExportedProgramPassResult(program, modified)


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
