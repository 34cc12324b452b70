from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.passes.remove_dead_code import remove_dead_code
from executorch.exir.passes.written_memory import memory_of, written_memory
from executorch.exir.torch_internals import schema_of

# Libraries whose operators give equal results for equal arguments, unless tagged as random.
_NAMESPACES = frozenset({"aten", "dim_order_ops", "executorch_prim", "quantized_decomposed"})


class MergeCommonSubexpressions(GraphPass):
    """Compute once what is computed from equal arguments.

    Before    a = f(x, 2); b = f(x, 2); y = g(a, b)
    After     a = f(x, 2); y = g(a, a)
    Ensures   equal values; the first of equal calls stays, with its debug handle.
    Leaves    random and mutating operators, what is computed before and after a mutation, results
              that are written in place, control flow, delegate calls, operators of other
              libraries; a second one of two equal graph outputs, which stays a tensor of its own.
              Sub-graphs of control flow are edited each by itself.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        written = written_memory(graph_module)
        seen: dict[Hashable, Node] = {}
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            op = overload_of(node.target)
            if op is not None and schema_of(op).is_mutable:
                seen.clear()
            elif _is_pure(node) and self.is_merged(node) and memory_of(node) not in written:
                first = seen.setdefault(_key(node), node)
                if first is not node and not (_is_output(first) and _is_output(node)):
                    for user in node.users:
                        if user.target is operator.getitem and "spec" in user.meta:
                            user.meta["spec"] = first.meta["spec"][user.args[1]]  # its memory
                    node.replace_all_uses_with(first)
                    graph_module.graph.erase_node(node)
                    modified = True
        return modified

    def is_merged(self, node: Node) -> bool:
        """Whether a call may be left out for an equal one before it; subclasses may forbid it."""
        return True


def _is_pure(node: Node) -> bool:
    op = overload_of(node.target)
    if op is None:
        return node.target is operator.getitem
    if op.namespace not in _NAMESPACES or torch.Tag.nondeterministic_seeded in op.tags:
        return False
    return bool(schema_of(op).returns)  # an assertion is there for its effect


def _is_output(node: Node) -> bool:
    return any(user.op == "output" for user in node.users)


def _key(node: Node) -> Hashable:
    return node.target, _frozen(node.args), _frozen(node.kwargs)


def _frozen(value: Any) -> Hashable:
    """Equal for equal arguments only: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((k, _frozen(value[k])) for k in sorted(value))
    if isinstance(value, float):
        return float, value.hex()
    return (type(value), value) if isinstance(value, Hashable) else id(value)


class CSEPass(MergeCommonSubexpressions):
    """`MergeCommonSubexpressions` under its public name, then without what nothing reads."""

    def edit_graph(self, graph_module: GraphModule) -> bool:
        return super().edit_graph(graph_module) and any([True, remove_dead_code(graph_module)])
