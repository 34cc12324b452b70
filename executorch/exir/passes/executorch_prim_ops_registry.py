"""The `executorch_prim` library: arithmetic on numbers that are known at run time only.

Importing this module registers the operators. They are not run in Python but by the runtime.
"""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import torch
from torch.library import Library

from executorch.exir.torch_internals import OpOverload

lib = Library("executorch_prim", "DEF")

_BINARY = "(Scalar a, Scalar b) -> Scalar"
_COMPARE = "(Scalar a, Scalar b) -> bool"
_UNARY = "(Scalar a) -> Scalar"

# name, schema, the Python functions that mean it
_TABLE: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("add", _BINARY, (operator.add,)),
    ("sub", _BINARY, (operator.sub,)),
    ("mul", _BINARY, (operator.mul,)),
    ("floordiv", _BINARY, (operator.floordiv,)),
    ("truediv", _BINARY, (operator.truediv,)),
    ("mod", _BINARY, (operator.mod,)),
    ("eq", _COMPARE, (operator.eq,)),
    ("gt", _COMPARE, (operator.gt,)),
    ("lt", _COMPARE, (operator.lt,)),
    ("ge", _COMPARE, (operator.ge,)),
    ("le", _COMPARE, (operator.le,)),
    ("neg", _UNARY, (operator.neg,)),
    ("ceil", _UNARY, (math.ceil,)),
    ("round", _UNARY, (builtins.round,)),
    ("trunc", _UNARY, (math.trunc,)),
    ("sym_float", _UNARY, (torch.sym_float,)),
    ("sym_int", _UNARY, (torch.sym_int,)),
    ("sym_max", _BINARY, (torch.sym_max,)),
    ("sym_min", _BINARY, (torch.sym_min,)),
    ("sym_not", "(bool a) -> bool", (torch.sym_not,)),
    ("sym_ite", "(bool a, Scalar b, Scalar c) -> Scalar", (torch.sym_ite,)),
)


def _register() -> dict[Any, OpOverload]:
    found: dict[Any, OpOverload] = {}
    for name, schema, functions in _TABLE:
        lib.define(f"{name}.Scalar{schema}")
        lib.impl(f"{name}.Scalar", functions[0], "CompositeExplicitAutograd")
        overload = getattr(torch.ops.executorch_prim, name).Scalar
        found.update((function, overload) for function in functions)
    return found


# Python function to operator.
PRIM_OPS = _register()
