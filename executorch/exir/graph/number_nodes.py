"""Symbolic expressions of sizes as nodes of a graph."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node, Proxy

from executorch.exir.graph.graph_edit import value_of


def append_number(
    graph: Graph, expression: sympy.Expr, sizes: Mapping[Any, Node], meta: Mapping[str, Any]
) -> Any:
    """A node at the end of the graph that computes an expression of sizes, or a Python number.

    `sizes` has a node for each symbol of the expression; new nodes get `meta` and their values.
    TraceError or TypeError if a function of the expression looks at a number's value.
    """
    from executorch.exir.torch_internals import sympy_interp

    tracer = torch.fx.proxy.GraphAppendingTracer(graph)
    known = {symbol: Proxy(sizes[symbol], tracer) for symbol in expression.free_symbols}
    last = next(reversed(graph.nodes))
    made = sympy_interp(_analysis(), known, expression)
    node = last.next
    while node.op != "root":
        node.meta = {**meta, "val": node.target(*value_of(node.args))}  # type: ignore[operator]
        node = node.next
    return made.node if isinstance(made, Proxy) else made


@functools.cache
def _analysis() -> Any:
    """What functions of expressions are in Python, with those that torch does not trace."""
    from executorch.exir.torch_internals import PythonReferenceAnalysis

    class Traced(PythonReferenceAnalysis):  # type: ignore[misc, valid-type]
        trunc_to_int = staticmethod(_call_of(math.trunc))
        floor_to_int = staticmethod(_call_of(math.floor))
        ceil_to_int = staticmethod(_call_of(math.ceil))
        round_to_int = staticmethod(_call_of(round))

        @staticmethod
        def int_truediv(a: Any, b: Any) -> Any:
            return a / b

    return Traced


def _call_of(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of a traced number as a call of the graph."""

    def call(number: Any, _dtype: Any) -> Any:
        if isinstance(number, Proxy):
            return number.tracer.create_proxy("call_function", function, (number,), {})
        return function(number)

    return call
