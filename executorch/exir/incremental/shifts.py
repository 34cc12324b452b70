"""Scores that the number of tokens shifts: by an amount that is the same for all keys of a query.

A softmax over the keys gives the same weights for them. So a bias for distance may be counted from
the end of the text (ALiBi as MPT has it): the program adds what it is for the text of the call.
"""

from __future__ import annotations

from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.masks import HIGHEST, is_lowest
from executorch.exir.incremental.operators import ADD, FILL, KEEP, SUBTRACT, WHERE
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import Kind, arguments

_SUMS = ADD | SUBTRACT


def is_shifted_table(rw: Rewriter, node: Node, table: Node, roles: dict[int, str]) -> bool:
    """Whether a value of the length, added to scores, is for each length the beginning of what it
    is for the longest text but for an amount that is the same for all keys."""
    extents = table.meta["val"].shape
    dims = [d for d, n in enumerate(extents) if rw.lengths.differs(n)]
    is_added = node.target in _SUMS and any(rw._is(n, Kind.SCORES) for n in node.all_input_nodes)
    if not is_added or len(dims) != 1 or len(node.all_input_nodes) != 2:
        return False
    shift = node.meta["val"].dim() - table.meta["val"].dim()
    is_of_keys = roles.get(dims[0] + shift) == "col"
    return is_of_keys and rw.lengths.is_shifted(table, dims[0], HIGHEST)


def remains_shifted(rw: Rewriter, node: Node) -> bool:
    """Of an elementwise operator: whether the scores it takes are shifted, and so its result is.
    Raises where it would not do the same to all of them."""
    if not any(rw._is(n, Kind.SCORES) and rw.values[n].shifted for n in node.all_input_nodes):
        return False
    if node.target in FILL:
        others = [arguments(node)[2]]
    elif node.target in WHERE:
        others = [a for a in arguments(node)[1:] if not _is_scores(rw, a)]
    else:
        others = []
    passes = node.target in KEEP | _SUMS | FILL | WHERE
    if not passes or len(others) != (node.target in FILL | WHERE):
        raise NotCausalError(node, "scores that the number of tokens shifts are not only added to")
    if not all(is_lowest(rw, node, other) for other in others):
        raise NotCausalError(node, "among scores that the number of tokens shifts, others are not")
    if not node.meta["val"].dtype.is_floating_point:
        raise NotCausalError(node, "scores that the number of tokens shifts are rounded")
    return True


def _is_scores(rw: Rewriter, argument: object) -> bool:
    return isinstance(argument, Node) and rw._is(argument, Kind.SCORES)
