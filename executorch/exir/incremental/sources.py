"""What a value is computed from: which numbers are among it, and whether tokens say all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.operators import FILL, KEEP, WHERE
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import PAIRS, Kind, arguments

aten = torch.ops.aten

JOINS = {aten.cat.default, aten.stack.default}
LOOKUPS = {aten.embedding.default, aten.index.Tensor, aten.index_select.default}
_INFINITE_AT_ZERO = {
    aten.log.default, aten.log2.default, aten.log10.default, aten.reciprocal.default,
    aten.rsqrt.default,
}  # fmt: skip
_PICKS = {aten.index.Tensor}

# What is this far below the others has weight zero beside any score that a model computes: e to its
# power is zero in all types.
LOW = -1e4


def require_no_mask(rw: Rewriter, node: Node, operand: Node) -> None:
    """Raise where numbers as large as a mask's are among what tokens say of themselves: a token of
    which all that it may see is as low would attend to later ones."""
    large = large_in(rw, operand)
    if large is not None:
        raise NotCausalError(node, f"{large.name} is a mask that tokens make themselves")


def large_in(rw: Rewriter, operand: Node) -> Node | None:
    """What makes, with a number as large as a mask's, the operand of what tokens say."""
    for at in sources(rw, [operand], (Kind.ROWS, *PAIRS), _is_followed):
        sizes = constant_sizes(rw, at) if is_pointwise(at) else []
        if at.target in LOOKUPS:  # the numbers among its arguments are no entries
            sizes = constant_sizes(rw, at)[1:]
        if any(bool((size >= -LOW).any()) for size in sizes):
            return at
        if at.target in _INFINITE_AT_ZERO and is_own_of_tokens(rw, at):
            return at
    return None


def is_own_of_tokens(rw: Rewriter, *nodes: Node) -> bool:
    """Whether they are made of what tokens say of themselves, such as which are padding, and not of
    what a model computes of them."""
    for at in sources(rw, [*nodes], (Kind.ROWS, *PAIRS), lambda _: True):
        tensors = [n for n in at.all_input_nodes if isinstance(n.meta.get("val"), Tensor)]
        is_elementwise = torch.Tag.pointwise in getattr(at.target, "tags", ())
        if len(tensors) > 1 and not is_elementwise and at.target not in WHERE | FILL | _PICKS:
            return False
    return True


def is_below_infinity(rw: Rewriter, operand: Node) -> bool:
    """Whether no constant that tokens choose or compute with makes an infinity above zero, nor a
    NaN, which would show what minus infinity hid."""
    is_infinite = is_computed = False
    for at in sources(rw, [operand], (Kind.ROWS, *PAIRS), _is_followed):
        if not is_pointwise(at) or not at.meta["val"].dtype.is_floating_point:
            continue
        is_computed |= at.target not in FILL | WHERE | KEEP
        numbers = [torch.tensor(float(a)) for a in arguments(at) if isinstance(a, float)]
        tables = [rw.lengths.longest(n) for n in at.all_input_nodes if _is_float_table(rw, n)]
        for found in (*numbers, *tables):
            if bool((found.isnan() | (found == torch.inf)).any()):
                return False
            is_infinite |= bool(found.isinf().any())
    return not (is_infinite and is_computed)


def _is_float_table(rw: Rewriter, node: Node) -> bool:
    fake = node.meta.get("val")
    is_float = isinstance(fake, Tensor) and fake.dtype.is_floating_point
    return is_float and rw._is(node, Kind.FIXED, Kind.LENGTH)


def _is_followed(at: Node) -> bool:
    """Whether what an operand is may be in what the node is computed to be."""
    tensors = [n for n in at.all_input_nodes if not isinstance(n.meta.get("val"), SymInt)]
    return is_pointwise(at) or len(tensors) == 1 or at.target in JOINS


def require_far_below(rw: Rewriter, node: Node, number: float) -> None:
    """Raise where scores that are seen may be as low as `number`, which is to hide others, because
    they were computed with numbers that are no mask but a tenth of it."""
    for at in sources(rw, node.all_input_nodes, PAIRS, lambda _: True):
        sizes = constant_sizes(rw, at) if is_pointwise(at) else []
        if any(bool(((size > -number / 10) & (size < -LOW)).any()) for size in sizes):
            raise NotCausalError(node, f"{number:g} may hide nothing behind {at.name}")


def sources(
    rw: Rewriter, start: list[Node], kinds: tuple[Kind, ...], goes_on: Callable[[Node], bool]
) -> Iterator[Node]:
    """`start` and what it was computed from, each node once, as far as nodes are of these kinds;
    operands of a node are looked at only where `goes_on` is true of it."""
    pending, found = list(start), set()
    while pending:
        at = pending.pop()
        if at in found or not rw._is(at, *kinds):
            continue
        found.add(at)
        yield at
        if goes_on(at):
            pending += at.all_input_nodes


def is_pointwise(node: Node) -> bool:
    fake = node.meta.get("val")
    if not isinstance(fake, Tensor) or fake.dtype == torch.bool:
        return False
    is_tagged = torch.Tag.pointwise in getattr(node.target, "tags", ())
    return is_tagged or node.target in KEEP | WHERE | FILL


def constant_sizes(rw: Rewriter, node: Node) -> list[Tensor]:
    """The absolute values of numbers and tables that are operands of the node."""
    numbers = [float(a) for a in arguments(node) if isinstance(a, (int, float))]
    tables = [n for n in node.all_input_nodes if rw._is(n, Kind.FIXED, Kind.LENGTH)]
    longest = [rw.lengths.longest(n) for n in tables if isinstance(n.meta["val"], Tensor)]
    return [v.to(torch.float32).abs() for v in (torch.tensor(numbers), *longest)]


def is_scores(rw: Rewriter, given: Any) -> bool:
    """Whether it is of queries and keys, or of either and meets the other."""
    return isinstance(given, Node) and rw._is(given, *PAIRS, Kind.ROWS)
