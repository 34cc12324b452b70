from __future__ import annotations

import math
import operator
from functools import reduce

import torch
from torch.fx import Node

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.operator_kind import STRUCTURAL, overload_of
from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.graph.source_line import source_line
from executorch.exir.passes.executorch_prim_ops_registry import PRIM_OPS

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class EdgeToBackendOpsPass(CallPass):
    """Turn Python arithmetic on symbolic numbers into operators that the runtime has.

    Before    m = operator.mul(n, 2)
    After     m = executorch_prim.mul.Scalar(n, 2)
    Ensures   `torch.sym_sum([a, b, c])` becomes a chain of additions, `n ** 3` one of products, and
              `math.floor(a)` becomes -ceil(-a).
    """

    def change(self, call: Node) -> bool:
        if overload_of(call.target) is not None:
            return False
        if call.target in PRIM_OPS:
            _require_numbers(call)
            call.target = PRIM_OPS[call.target]
        elif call.target is torch.sym_sum:
            _expand_sum(call)
        elif call.target is math.floor:
            _expand_floor(call)
        elif call.target in (operator.pow, pow) and _is_count(call.args[1]):
            _expand_power(call)
        elif isinstance(call.meta.get("val"), _SYMBOLIC) and call.target not in STRUCTURAL:
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"{call}: the runtime has no operator for {call.target} on symbolic numbers\n"
                f"  in your model: {source_line(call)}\n"
                "  compute the size with + - * // % min max, or fix the dimension's size",
            )
        else:
            return False
        return True


def _require_numbers(call: Node) -> None:
    """A pass may have left a function of Python on tensors, which only looks like arithmetic."""
    for operand in call.all_input_nodes:
        if isinstance(operand.meta.get("val"), torch.Tensor):
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"{call} = {call.target}: Python's function on {operand}, a tensor; expected an "
                "edge operator, such as exir_ops.edge.aten.add.Tensor\n"
                f"  in your model: {source_line(call)}",
            )


def _expand_sum(node: Node) -> None:
    add = PRIM_OPS[operator.add]
    terms = list(node.args[0])  # type: ignore[arg-type]
    values = [t.meta["val"] if isinstance(t, Node) else t for t in terms]

    def append(so_far: tuple[object, object], term: tuple[object, object]) -> tuple[object, object]:
        value = so_far[1] + term[1]  # type: ignore[operator]
        return insert_before(node, add, (so_far[0], term[0]), value=value), value

    total = reduce(append, zip(terms, values, strict=True))[0]
    if not isinstance(total, Node):
        raise ExportError(ExportErrorType.VIOLATION_OF_SPEC, f"{node}: a sum of one number")
    replace_node(node, total)


def _expand_floor(node: Node) -> None:
    number = node.args[0]
    value = number.meta["val"]  # type: ignore[union-attr]
    negated = insert_before(node, PRIM_OPS[operator.neg], (number,), value=-value)
    ceiling = insert_before(node, PRIM_OPS[math.ceil], (negated,), value=math.ceil(-value))
    node.target, node.args = PRIM_OPS[operator.neg], (ceiling,)


def _is_count(exponent: object) -> bool:
    """Whether a power becomes a chain of products. Of sizes from 2 on, powers above 63 exceed 64
    bits."""
    return isinstance(exponent, int) and 1 <= exponent <= 63


def _expand_power(node: Node) -> None:
    base, exponent = node.args
    value = base.meta["val"]  # type: ignore[union-attr]
    power, result = base, value
    for _ in range(exponent - 1):  # type: ignore[operator, arg-type]
        result = result * value
        power = insert_before(node, PRIM_OPS[operator.mul], (power, base), value=result)
    replace_node(node, power)  # type: ignore[arg-type]
