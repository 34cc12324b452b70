"""Operators that only move elements: which dim of the result is that of the tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.rewriter import ROWS, Rewriter, map_arg_lists
from executorch.exir.incremental.sources import is_own_of_tokens, require_no_mask
from executorch.exir.incremental.values import Kind, Value, arguments

aten = torch.ops.aten

# Their sizes are made anew from the result's shape.
SIZED_MOVES = {
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.expand.default,
}  # fmt: skip
MOVES = SIZED_MOVES | {
    aten.permute.default, aten.transpose.int, aten.t.default, aten.mT.default,
    aten.numpy_T.default, aten.movedim.int, aten.movedim.intlist, aten.swapaxes.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default,
    aten.flatten.using_ints, aten.unflatten.int, aten.clone.default, aten.contiguous.default,
    aten.alias.default, aten.detach.default, aten.detach_.default, aten.select.int,
    aten.slice.Tensor, aten.narrow.default, aten.split.Tensor, aten.split_with_sizes.default,
    aten.chunk.default, aten.unbind.int, aten.repeat.default, aten.repeat_interleave.self_int,
    aten.index_select.default, aten.index.Tensor, aten.flip.default, aten.roll.default,
}  # fmt: skip
# Which argument is the dim whose extent the call's numbers may be.
_EXTENTS: dict[Any, int] = {
    aten.slice.Tensor: 1, aten.narrow.default: 1, aten.unflatten.int: 1, aten.split.Tensor: 2,
    aten.split_with_sizes.default: 2,
}  # fmt: skip

_PROBE = 5  # tokens
_MIXES = "it does not keep tokens apart, or in their order"


def extent_dim(node: Node) -> int | None:
    """The dim of the first operand whose extent the numbers of a move may be."""
    at = _EXTENTS.get(node.target)
    if at is None:
        return None
    dim = arguments(node)[at] if len(arguments(node)) > at else 0
    return int(dim % arguments(node)[0].meta["val"].dim())


def classify_move(rw: Rewriter, node: Node) -> Any:
    """Found by moving a small tensor that counts along the tokens."""
    operand = arguments(node)[0]
    value = rw.values[operand]
    for other in node.all_input_nodes:
        if other is not operand and rw.values[other].kind not in (Kind.FIXED, Kind.LENGTH):
            raise NotCausalError(node, "places are picked that depend on tokens")
        is_table = isinstance(other.meta["val"], Tensor) and rw.values[other].kind is Kind.LENGTH
        if is_table and other is not index_of_all(rw, node):
            raise NotCausalError(node, "places are picked that depend on the number of tokens")
    if node.target is aten.expand.default and value.kind is Kind.ROWS:
        row = value.row + node.meta["val"].dim() - operand.meta["val"].dim()
        dims = token_dims(node.meta["val"], rw.symbol)
        if len(dims) == 2 and row in dims:  # each query gets what the keys have, or the reverse
            if not is_own_of_tokens(rw, operand):
                require_no_mask(rw, node, operand)
            return Value(Kind.SCORES, dims[0], dims[1], bounds=value.bounds)
    if node.target not in SIZED_MOVES and extent_dim(node) not in value.dims():
        rw.lengths.require_same_numbers(node)
    rows = _moved(rw, node, value.row)
    cols = _moved(rw, node, value.col) if value.col is not None else [None] * len(rows)
    found = [replace(value, row=r, col=c) for r, c in zip(rows, cols, strict=True)]
    return found if isinstance(node.meta["val"], (list, tuple)) else found[0]


def index_of_all(rw: Rewriter, node: Node) -> Node | None:
    """The index by which a node picks all tokens, in their order: their numbers."""
    operand, row = arguments(node)[0], rw.operand_value(node, 0).row
    if node.target is not aten.index.Tensor or not rw._is(operand, Kind.ROWS):
        return None
    index = arguments(node)[1]
    at = index[row] if row is not None and row < len(index) else None
    if at is None or rw.values[at].kind is not Kind.LENGTH:
        return None
    dims, longest = token_dims(at.meta["val"], rw.symbol), rw.lengths.longest(at)
    if len(dims) != 1 or longest.dtype is torch.bool or longest.shape[dims[0]] != rw.maximum:
        return None
    count = torch.arange(rw.maximum).view([-1 if d == dims[0] else 1 for d in range(longest.dim())])
    if not torch.equal(longest.to(torch.int64), count.expand(longest.shape)):
        return None
    rw.lengths.prove([at])
    return at  # type: ignore[no-any-return]


def make_numbers(rw: Rewriter, index: Node, version: str) -> Node:
    """What index_of_all has found, to pick all of the version's tokens."""
    count = rw.count if version == ROWS else rw.end
    with rw.fake_mode:
        value = torch.empty(count.meta["val"], dtype=torch.int64)
    numbers = rw.call(aten.arange.start_step, 0, count, 1, dtype=torch.int64, value=value)
    fake = index.meta["val"]
    dims = token_dims(fake, rw.symbol)
    lined_up = [count if d in dims else 1 for d in range(fake.dim())]
    sizes = [count if d in dims else n for d, n in enumerate(fake.shape)]
    return rw.call(aten.expand.default, rw.call(aten.view.default, numbers, lined_up), sizes)


def _moved(rw: Rewriter, node: Node, dim: int) -> list[int]:
    length = min(_PROBE, rw.maximum)
    fake = arguments(node)[0].meta["val"]
    if node.target is aten.roll.default:  # by as many as the probe has it would seem to do nothing
        dims = arguments(node)[2] if len(arguments(node)) > 2 else ()
        if not dims or dim in [d % fake.dim() for d in dims]:
            raise NotCausalError(node, _MIXES)
    shape = [n if isinstance(n, int) else rw.lengths.number(n, length) for n in fake.shape]
    count = torch.arange(length).view([-1 if d == dim else 1 for d in range(len(shape))])
    probe = count.expand(shape).clone(memory_format=torch.contiguous_format)

    def operand(n: Node) -> Any:
        if n is arguments(node)[0]:
            return probe
        return rw.lengths.at(n, length)

    move: Any = node.target
    result = move(*map_arg_lists(arguments(node), operand), **map_arg_lists(node.kwargs, operand))
    fakes = node.meta["val"]
    if isinstance(result, Tensor):
        result, fakes = [result], [fakes]
    return [_counts_along(rw, node, r, f) for r, f in zip(result, fakes, strict=True)]


def _counts_along(rw: Rewriter, node: Node, result: Tensor, fake: Tensor) -> int:
    for dim in token_dims(fake, rw.symbol):
        count = torch.arange(result.shape[dim])
        count = count.view([-1 if d == dim else 1 for d in range(result.dim())])
        if torch.equal(result, count.expand(result.shape)):
            return dim
    raise NotCausalError(node, _MIXES)


def is_selection(rw: Rewriter, node: Node) -> bool:
    """Whether it picks the last token's entry; raises if it picks others."""
    operand = arguments(node)[0]
    value = rw.values.get(operand) if isinstance(operand, Node) else None
    if not isinstance(value, Value) or value.row is None:
        return False
    target, args = node.target, [*arguments(node), None, None, None, None]
    if target is aten.index.Tensor:
        index = args[1]
        at = index[value.row] if value.row < len(index) else None
        if at is None or index_of_all(rw, node) is not None:
            return False
        if rw.values[at].kind is Kind.FIXED and bool((rw.lengths.longest(at) == -1).all()):
            return value.kind is Kind.ROWS
        raise NotCausalError(node, "it picks tokens other than the last")
    if target is aten.narrow.default and args[3] == 1:
        target = aten.select.int
    if target not in (aten.select.int, aten.slice.Tensor):
        return False
    dim = (args[1] or 0) % operand.meta["val"].dim()
    if dim not in (value.row, value.col):
        return False
    first = _place(rw, args[2])
    if target is aten.select.int:
        if first == "last" and dim == value.row:
            return True
        raise NotCausalError(node, "it picks a token other than the last")
    to_end = args[3] is None or _place(rw, args[3]) == "end"
    if to_end and first in ("first", None) and (args[4] or 1) == 1:
        return False  # all
    if to_end and first == "last" and dim == value.row:
        return True
    raise NotCausalError(node, "it cuts out tokens other than the last")


def _place(rw: Rewriter, index: Any) -> str | None:
    """Where along T tokens a number lies: first, last, end; "" if elsewhere."""
    value = index.meta["val"] if isinstance(index, Node) else index
    if isinstance(value, SymInt):
        distance = value.node.expr - rw.symbol
        return {0: "end", -1: "last"}.get(int(distance), "") if distance.is_number else ""
    if value is None:
        return None
    return "first" if value == 0 else "last" if value == -1 else "end" if value >= 2**31 - 1 else ""
