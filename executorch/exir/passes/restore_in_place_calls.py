"""Operators of users that write into their arguments are called as such again."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from executorch.exir.dialects.edge._ops import edge_op
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import provenance
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.graph.source_line import source_line
from executorch.exir.passes.written_memory import clone_of
from executorch.exir.torch_internals import HigherOrderOperator, OpOverload, schema_of

_FUNCTIONAL = ("auto_functionalized", "auto_functionalized_v2")


class RestoreInPlaceCalls(Pass):
    """Undo torch's functionalization of operators that write into their arguments.

    Before    t = auto_functionalized_v2(op, x=x, _c_base_index=0, _all_bases=[b])
              y = t[0]; c = t[1]
    After     y = op(x, b); and b wherever c was read
    Requires  a functional edge graph, before out variants and write-backs.
    Ensures   equal values: an argument whose old value is read later, or which is a constant, an
              input that the caller keeps or a result of another operator, is cloned, and the clone
              written.
    Raises    ExportError for an argument that is a view of what is written.
    """

    takes = frozenset({Dialect.EDGE, Dialect.BACKEND})
    gives = Dialect.BACKEND

    def edit(self, view: ProgramView) -> bool:
        nodes = list(view.graph.nodes)
        calls = [n for n in nodes if n.op == "call_function" and _is_functionalized(n)]
        writable = set(view.next_values) if calls else set()
        order = {node: i for i, node in enumerate(nodes)}
        for call in calls:
            _restore(call, writable, order)
        return bool(calls)


def _is_functionalized(node: Node) -> bool:
    higher_order = isinstance(node.target, HigherOrderOperator)
    return higher_order and node.target.name() in _FUNCTIONAL  # type: ignore[union-attr]


def _restore(call: Node, writable: set[Node], order: dict[Node, int]) -> None:
    op: Any = call.args[0]
    arguments, bases = _arguments(call, op)
    parts: dict[Any, Node] = {n.args[1]: n for n in call.users if n.target is operator.getitem}
    first_base = max(1, len(schema_of(op).returns))
    graph = call.graph
    memory: dict[Node, Node] = {}  # what is read before -> what is written
    with graph.inserting_before(call):
        for base in bases:
            read_later = any(order[user] > order[call] for user in base.users if user in order)
            in_place = base in writable and not read_later
            memory[base] = base if in_place else clone_of(base)
            # A second call may write into the clone, too.
            writable.add(memory[base])
            order[memory[base]] = order[base]
        args = _replaced(_positional(op, arguments), memory)
        node = graph.call_function(edge_op(op), args)
    value = call.meta["val"]
    results = value[: len(schema_of(op).returns)]
    node.meta = {**provenance(call), "val": results[0] if len(results) == 1 else tuple(results)}
    order[node] = order[call]
    for i, base in enumerate(bases):
        if first_base + i in parts:
            _take_over(parts.pop(first_base + i), memory[base])
    for i, part in parts.items():
        if len(schema_of(op).returns) == 1:
            _take_over(part, node)
        else:
            part.args = (node, i)
    graph.erase_node(call)


def _take_over(old: Node, new: Node) -> None:
    old.replace_all_uses_with(new)
    old.graph.erase_node(old)


def _arguments(call: Node, op: OpOverload) -> tuple[dict[str, Any], list[Node]]:
    """The operator's arguments by name, and the tensors that it writes, in the results' order."""
    given = dict(call.kwargs)
    written = [a.name for a in schema_of(op).arguments if a.alias_info and a.alias_info.is_write]
    if call.target.name() == "auto_functionalized":  # type: ignore[union-attr]
        bases: list[Any] = [given[name] for name in written]
        if not all(isinstance(base, Node) for base in bases):
            raise _refusal(call, op, "an argument that is not one tensor")
        return given, bases
    bases = list(given.pop("_all_bases"))  # type: ignore[arg-type]
    arguments: dict[str, Any] = {k: v for k, v in given.items() if not k.startswith("_")}
    for name in written:
        index = given.get(f"_{name}_base_index")
        if f"_{name}_length" in given:
            raise _refusal(call, op, f"the list {name!r}")
        about = {k for k in given if k.startswith(f"_{name}_")}
        if about - {f"_{name}_base_index", f"_{name}_alias"}:
            raise _refusal(call, op, f"{name!r}, a view of a tensor")
        arguments[name] = None if index is None else bases[index]  # type: ignore[index]
    return arguments, bases


def _positional(op: OpOverload, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments in schema order, without trailing defaults."""
    values = [arguments.get(a.name, a.default_value) for a in schema_of(op).arguments]
    n = 1 + max(
        (i for i, a in enumerate(schema_of(op).arguments) if a.name in arguments), default=-1
    )
    return tuple(values[:n])


def _replaced(args: tuple[Any, ...], memory: dict[Node, Node]) -> tuple[Any, ...]:
    return tuple(memory.get(a, a) if isinstance(a, Node) else a for a in args)


def _refusal(call: Node, op: OpOverload, what: str) -> ExportError:
    return ExportError(
        ExportErrorType.NOT_SUPPORTED,
        f"{call}: {op} writes into {what}; give it a whole tensor, such as a buffer\n"
        f"  in your model: {source_line(call)}",
    )
