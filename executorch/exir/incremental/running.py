"""What is made of all tokens up to each: running sums, and tokens moved on by some places.

Of all tokens' operands all results are made, and those of the new tokens cut out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir.incremental.convolution import CUTS, PADDINGS, copy_of_all
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import Kind, Value, arguments, bound_arguments

aten = torch.ops.aten

RUNNING = {
    aten.cumsum.default, aten.cumprod.default, aten.logcumsumexp.default, aten.cummax.default,
    aten.cummin.default,
}  # fmt: skip


def classify_moved_on(rw: Rewriter, node: Node) -> Value:
    """The cut of tokens padded before the first that leaves as many as there are tokens."""
    value = rw.values[arguments(node)[0]]
    given = bound_arguments(node)
    dim = given["dim"] % node.meta["val"].dim()
    if given["start"] not in (None, 0) or given.get("step", 1) != 1 or dim != value.row:
        raise NotCausalError(node, "tokens padded before the first are cut elsewhere than behind")
    if dim not in token_dims(node.meta["val"], rw.symbol):
        raise NotCausalError(node, "of tokens padded before the first, not as many are left")
    return Value(Kind.ROWS, dim)


def is_of_all(rw: Rewriter, node: Node) -> bool:
    """Whether rows are made as make_of_all does it."""
    source, value = arguments(node)[0], rw.values[node]
    if node.target in CUTS:
        return rw._is(source, Kind.PADDED)
    if node.target in RUNNING:
        return bool(arguments(node)[1] % source.meta["val"].dim() == rw.values[source].row)
    if node.target in PADDINGS:
        amounts = arguments(node)[1]
        at = 2 * (node.meta["val"].dim() - 1 - value.row)
        return any(amounts[at : at + 2])
    return False


def make_of_all(rw: Rewriter, node: Node) -> Any:
    source, value = arguments(node)[0], rw.values[node]
    made = copy_of_all(rw, source if rw._is(source, Kind.PADDED) else node)
    if not isinstance(made, list):
        return rw.cut_rows(made, value.row)
    return [rw.cut_rows(one, known.row) for one, known in zip(made, value, strict=True)]
