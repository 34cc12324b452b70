from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import Target

from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.graph.program_view import ProgramView


@dataclass
class DialectNodeSpec:
    """A call of a backend's own operator."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None = field(default=None)


class AtenToDialectPass(CallPass):
    """Call a backend's own operators in the place of others. A backend makes a subclass.

        class ToMine(AtenToDialectPass): ...

        @ToMine.register_dialect_substitution(exir_ops.edge.aten.add.Tensor)
        def add(node, pass_):
            return DialectNodeSpec(exir_ops.edge.mine.add.default, node.args)

    A substitution gives the call that stands for a node, or None where the node stays. It may add
    constants to `pass_.exported_program` (`utils.create_constant_placeholder`).
    Ensures   the new call has the node's value and its place in the user's module.
    """

    _substitutions: ClassVar[dict[Target, Substitution]] = {}

    def __init__(self, exported_program: ExportedProgram) -> None:
        super().__init__()
        self.exported_program = exported_program

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._substitutions = {}

    @classmethod
    def register_dialect_substitution(
        cls, target: Target
    ) -> Callable[[Substitution], Substitution]:
        """Register the decorated function for an operator; RuntimeError if it has one."""

        def register(substitution: Substitution) -> Substitution:
            if target in cls._substitutions:
                raise RuntimeError(f"{cls.__name__}: two substitutions for {target}")
            cls._substitutions[target] = substitution
            return substitution

        return register

    def edit(self, view: ProgramView) -> bool:
        if view.program is not None:  # `transform` runs passes over a program with the same graph
            self.exported_program = view.program
        return super().edit(view)

    def change(self, call: Node) -> bool:
        substitution = self._substitutions.get(call.target)  # type: ignore[arg-type]
        spec = None if substitution is None else substitution(call, self)
        if spec is None:
            return False
        new = insert_before(call, spec.op, spec.args, spec.kwargs, value=call.meta.get("val"))
        new.meta = dict(call.meta)
        replace_node(call, new)
        return True


Substitution: TypeAlias = Callable[[Node, AtenToDialectPass], DialectNodeSpec | None]
SubstitutionFn = Substitution
