"""What is made of a tapped value, in eager mode and as nodes of a lowered graph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from executorch.exir.dialects._ops import ops as exir_ops

_aten = exir_ops.edge.aten


@dataclass(frozen=True)
class StatReducer:
    """A function of a tensor, written twice.

    fields  names of the elements of its result, which has one dim; none: it is the value itself
    emit    adds nodes of edge operators to the graph and returns the last one
    eager   the same of a tensor
    """

    name: str
    fields: tuple[str, ...]
    emit: Callable[[Graph, Node], Node]
    eager: Callable[[torch.Tensor], torch.Tensor]


def get_reducer(name_or_reducer: str | StatReducer) -> StatReducer:
    """The reducer of that name: one of this module, or one that a program was tapped with."""
    if isinstance(name_or_reducer, StatReducer):
        return name_or_reducer
    if name_or_reducer not in _known:
        raise ValueError(f"no reducer {name_or_reducer!r}; there are {sorted(_known)}")
    return _known[name_or_reducer]


def remember(reducer: StatReducer) -> None:
    """Let the operator, which carries names only, find `reducer`. The newest of a name counts;
    ValueError for the names of this module."""
    if reducer.name in ("FULL_TENSOR", "STATS") and _known[reducer.name] is not reducer:
        raise ValueError(f"the name {reducer.name!r} is that of another reducer: choose one")
    _known[reducer.name] = reducer


# In the order of the results of `_eager_stats` and `_emit_stats`. `std` is that of the population;
# `p99_abs` the least of the largest hundredth of the absolute values.
_FIELDS = (
    *("min", "max", "mean", "abs_max", "abs_mean", "std", "rms", "l1_norm", "l2_norm"),
    *("nan_count", "inf_count", "zero_count", "p99_abs"),
)


def _eager_stats(value: torch.Tensor) -> torch.Tensor:
    x = value.detach().to(torch.float32)
    size, square = x.abs(), x.pow(2.0)
    variance = (square.mean() - x.mean().pow(2.0)).abs()
    largest = torch.topk(size.reshape(-1), (x.numel() + 99) // 100).values
    counts = [mask.to(torch.float32).sum() for mask in (x.isnan(), x.isinf(), x == 0)]
    return torch.stack(
        [
            *(x.amin(), x.amax(), x.mean(), size.amax(), size.mean(), variance.sqrt()),
            *(square.mean().sqrt(), size.sum(), square.sum().sqrt()),
            *(*counts, largest[-1]),
        ]
    )


def _emit_stats(graph: Graph, source: Node) -> Node:
    def call(target: Any, *args: Any, **options: Any) -> Node:
        return graph.call_function(target, args, options)

    def as_float(node: Node) -> Node:
        return call(_aten._to_copy.default, node, dtype=torch.float32)

    def total(node: Node) -> Node:
        return call(_aten.sum.dim_IntList, node, [])

    x = as_float(source)
    size = call(_aten.abs.default, x)
    square = call(_aten.pow.Tensor_Scalar, x, 2.0)
    mean, mean_square = call(_aten.mean.default, x), call(_aten.mean.default, square)
    variance = call(_aten.sub.Tensor, mean_square, call(_aten.pow.Tensor_Scalar, mean, 2.0))
    masks = [call(_aten.isnan.default, x), call(_aten.isinf.default, x)]
    masks.append(call(_aten.eq.Scalar, x, 0.0))
    flat = call(_aten.view_copy.default, size, [-1])
    n_largest = _ceil_hundredth(graph, source)
    largest = call(operator.getitem, call(_aten.topk.default, flat, n_largest), 0)
    stats = [
        *(call(_aten.amin.default, x), call(_aten.amax.default, x), mean),
        *(call(_aten.amax.default, size), call(_aten.mean.default, size)),
        call(_aten.sqrt.default, call(_aten.abs.default, variance)),
        *(call(_aten.sqrt.default, mean_square), total(size)),
        call(_aten.sqrt.default, total(square)),
        *(total(as_float(mask)) for mask in masks),
        call(_aten.select_copy.int, largest, 0, -1),
    ]
    return call(_aten.stack.default, stats)


def _ceil_hundredth(graph: Graph, source: Node) -> Any:
    """A hundredth of the number of elements, which may be known at run time only."""
    count: Any = 1
    for dim, size in enumerate(source.meta["val"].shape):
        if not isinstance(size, int):
            size = graph.call_function(torch.ops.aten.sym_size.int, (source, dim))
        both_known = isinstance(count, int) and isinstance(size, int)
        count = count * size if both_known else graph.call_function(operator.mul, (count, size))
    if isinstance(count, int):
        return (count + 99) // 100
    rounded = graph.call_function(operator.add, (count, 99))
    return graph.call_function(operator.floordiv, (rounded, 100))


FULL_TENSOR = StatReducer("FULL_TENSOR", (), lambda graph, source: source, lambda x: x.detach())
STATS = StatReducer("STATS", _FIELDS, _emit_stats, _eager_stats)
_known = {reducer.name: reducer for reducer in (FULL_TENSOR, STATS)}
