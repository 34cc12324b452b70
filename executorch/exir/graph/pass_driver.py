"""What a pass is, and the one loop that runs passes. ARCHITECTURE.md, "Passes", says the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph import pass_checks
from executorch.exir.graph.dynamic_sizes import watch_sizes
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.program_view import Dialect, ProgramView


@dataclass
class ExportedProgramPassResult:
    exported_program: ExportedProgram
    modified: bool


class Pass(PassBase):
    """A step that edits a view in place.

    takes  dialects that it can work on
    gives  the dialect of its result; None: the one it took
    It can also be called by itself, on a graph module or an exported program, whatever dialect.
    """

    takes: frozenset[Dialect] = frozenset(Dialect)
    gives: Dialect | None = None

    def __str__(self) -> str:
        return type(self).__name__

    def edit(self, view: ProgramView) -> bool:
        """Edit graphs and signature; true if anything changed."""
        raise NotImplementedError

    def edit_methods(self, views: Sequence[ProgramView]) -> bool:
        """Edit all methods of a program, for passes that must see them together."""
        return any([self.edit(view) for view in views])

    def __call__(self, given: Any) -> Any:
        return self.call(given)

    def call(self, graph_module: Any) -> Any:
        """A PassResult for a graph module, an ExportedProgramPassResult for a program."""
        view = ProgramView(graph_module)
        modified = run_passes([view], [self])
        if view.program is not None:
            return ExportedProgramPassResult(view.program, modified)
        return PassResult(view.graph_module, modified)


class GraphPass(Pass):
    """A pass that edits each graph by itself, those of control flow too."""

    def edit(self, view: ProgramView) -> bool:
        return any([self.edit_graph(gm) for gm in view.graph_modules()])

    def edit_graph(self, graph_module: GraphModule) -> bool:
        """Edit `graph_module.graph`; true if anything changed."""
        raise NotImplementedError


class CallPass(GraphPass):
    """A pass that changes one call at a time, in the graph's order. The calls that it adds are not
    looked at.

    rules  operator -> the rule for its calls, which returns whether it changed one. A rule for a
           torch overload is for the edge operator that wraps it, too.
    """

    rules: Mapping[Any, Callable[[Node], bool]] = MappingProxyType({})

    def change(self, call: Node) -> bool:
        """Change `call`, or what it reads; true if anything changed."""
        rule = self.rules.get(call.target) or self.rules.get(overload_of(call.target))
        return rule is not None and rule(call)

    def edit_graph(self, graph_module: GraphModule) -> bool:
        calls = [n for n in graph_module.graph.nodes if n.op == "call_function"]
        return any([self.change(call) for call in calls])


def run_passes(views: Sequence[ProgramView], passes: Iterable[Pass]) -> bool:
    """Run passes in order, each over all methods, in place; true if anything changed.

    Facts are forgotten and outputs named after a pass that changed something, code is generated
    once at the end. ExportError for a pass that does not take the dialect that a view has, and,
    with EXECUTORCH_CHECK_PASSES, for one that leaves what `pass_checks` refuses. RuntimeError where
    a pass fixes a dynamic size.
    """
    checks = pass_checks.Checks(views) if pass_checks.are_on() else None
    dynamic = {symbol: place for view in views for symbol, place in view.dynamic_dims.items()}
    modified = False
    with watch_sizes(dynamic) as sizes:
        for each in passes:
            changed = _run_pass(views, each)
            modified |= changed
            sizes.check(str(each))
            if checks is not None:
                checks.run(str(each))
    if modified:
        for view in views:
            for graph_module in view.graph_modules():
                graph_module.recompile()
    return modified


def _run_pass(views: Sequence[ProgramView], each: Pass) -> bool:
    for view in views:
        if view.dialect is not None and view.dialect not in each.takes:
            takes = ", ".join(sorted(d.value for d in each.takes))
            raise ExportError(
                ExportErrorType.VIOLATION_OF_SPEC,
                f"{each} takes the dialects {takes}; the program is of {view.dialect.value}",
            )
    changed = each.edit_methods(views)
    for view in views:
        if changed:
            view.forget()
            view.update_outputs()
        if view.dialect is not None and each.gives is not None:
            view.dialect = each.gives
    return changed
