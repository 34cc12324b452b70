"""Passes that write arithmetic with the operators that a backend has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import Target

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import CallPass

_edge = ops.edge.aten
_aten = torch.ops.aten


def _sum_and_divide(call: Node) -> bool:
    x: Any = call.args[0]
    value: Tensor = x.meta["val"]
    dims: Any = call.args[1]
    extents = [value.shape[dim] for dim in dims or range(value.dim())]
    if not all(isinstance(extent, int) for extent in extents):
        return False
    total = insert_before(call, _edge.sum.dim_IntList, call.args, call.kwargs)
    count = _full(call, _edge.full.default, float(math.prod(extents)), total.meta["val"])
    replace_node(call, insert_before(call, _edge.div.Tensor, (total, count)))
    return True


def _full(anchor: Node, full: Any, number: float, beside: Tensor) -> Node:
    """A tensor of one number to compute with beside another, of whose dtype it is."""
    kwargs = {"dtype": beside.dtype, "device": beside.device}
    return insert_before(anchor, full, ([1] if beside.dim() else [], number), kwargs)


class MeanToSumDiv(CallPass):
    """Compute means by sums.

    Before    y = mean(x, [2, 3], keepdim), x [n, c, 4, 5]
    After     y = sum(x, [2, 3], keepdim) / full([1], 20)
    Requires  edge operators.
    Leaves    means over dynamic sizes.
    """

    rules = {_edge.mean.dim: _sum_and_divide}


class ReplaceScalarWithTensorArgPass(CallPass):
    """Give operators on two tensors a tensor in the place of a number.

    Before    y = add.Scalar(x, 2, alpha)
    After     c = full([1], 2, dtype of x); y = add.Tensor(x, c, alpha=alpha)
    Leaves    numbers that x's dtype does not have (a fraction beside integers).

    scalar_to_tensor_ops  operator with a number -> operator with a tensor; by default those of
                          add, sub, mul and div, torch's and edge operators
    """

    default_ops: Mapping[Target, Target] = {
        getattr(packets, name).Scalar: getattr(packets, name).Tensor
        for packets in (_edge, _aten)
        for name in ("add", "sub", "mul", "div")
    }

    def __init__(self, scalar_to_tensor_ops: Mapping[Target, Target] | None = None) -> None:
        super().__init__()
        given = scalar_to_tensor_ops
        self.scalar_to_tensor_ops = self.default_ops if given is None else given

    def change(self, call: Node) -> bool:
        target: Any = self.scalar_to_tensor_ops.get(call.target)  # type: ignore[arg-type]
        if target is None:
            return False
        x, number, *rest = call.args
        value: Tensor = x.meta["val"]  # type: ignore[union-attr]
        if not isinstance(number, (int, float)) or not _has(value.dtype, number):
            return False
        full = _aten.full.default if overload_of(call.target) is call.target else _edge.full.default
        kwargs = dict(call.kwargs)
        if rest:  # behind a number alpha is positional
            kwargs["alpha"] = rest[0]
        other = _full(call, full, number, value)
        replace_node(call, insert_before(call, target, (x, other), kwargs, call.meta["val"]))
        return True


def _has(dtype: torch.dtype, number: float) -> bool:
    return dtype.is_floating_point or (dtype is not torch.bool and isinstance(number, int))
