"""Causal convolutions: tokens are padded before the first, and each is convolved with those before.

The padded value itself is never kept or cut: the convolution takes the part of it that its rows
need.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.rewriter import FULL, Rewriter
from executorch.exir.incremental.values import Kind, Value, arguments

aten = torch.ops.aten

PADDINGS = {aten.constant_pad_nd.default, aten.pad.default}
# Where their stride, padding and dilation are.
CONVOLUTIONS = {aten.conv1d.default: (3, 4, 5), aten.convolution.default: (3, 4, 5)}
_DEFAULTS = (1, 0, 1)
_END = 2**63 - 1


def classify_padding(rw: Rewriter, node: Node) -> Value:
    operand, amounts, *mode = arguments(node)
    value = rw.values[operand]
    if value.kind is not Kind.ROWS:
        raise NotCausalError(node, "scores are padded")
    if node.target is aten.pad.default and mode and mode[0] != "constant":
        raise NotCausalError(node, "it pads with values of other places")
    at = 2 * (node.meta["val"].dim() - 1 - value.row)  # amounts begin with those of the last dim
    before, behind = amounts[at : at + 2] or (0, 0)
    if (before, behind) == (0, 0):
        return Value(Kind.ROWS, value.row)
    if not isinstance(before, int) or before < 0 or behind != 0:
        raise NotCausalError(node, "tokens are padded elsewhere than before the first")
    return Value(Kind.PADDED, value.row, before=before)


def classify_convolution(rw: Rewriter, node: Node) -> Value:
    """Each result is of as many tokens up to its own as there are entries before the first."""
    given = arguments(node)
    value, weight = rw.values[given[0]], given[1]
    operands = [rw.values[n].kind for n in node.all_input_nodes if n is not given[0]]
    if set(operands) - {Kind.FIXED}:
        raise NotCausalError(node, "a convolution whose weight depends on the tokens")
    shape = weight.meta["val"].shape
    if value.kind not in (Kind.ROWS, Kind.PADDED) or len(shape) != 3 or value.row != 2:
        raise NotCausalError(node, "a convolution along other dims than the last, of tokens")
    stride, padding, dilation = (
        _single(given[at] if len(given) > at else default)
        for at, default in zip(CONVOLUTIONS[node.target], _DEFAULTS, strict=True)  # type: ignore[index]
    )
    transposed = node.target is aten.convolution.default and given[6]
    seen = dilation * (shape[2] - 1)
    if stride != 1 or padding != 0 or transposed or seen != value.before:
        raise NotCausalError(
            node,
            f"a convolution over {seen + 1} tokens whose operand has {value.before} entries before "
            f"the first; stride {stride}, padding {padding}; a causal one has {seen}, 1 and 0",
        )
    return Value(Kind.ROWS, 2)


def _single(number: Any) -> Any:
    return number[0] if isinstance(number, (list, tuple)) else number


def make_convolution(rw: Rewriter, node: Node) -> Node:
    """The rows: the convolution of the last entries of all tokens, padded."""
    source = arguments(node)[0]
    value = rw.values[source]
    if value.kind is Kind.ROWS:
        rows = rw.rows(source)
    else:
        padded = rw.copy(source, rw.full, FULL)
        shape = list(padded.meta["val"].shape)
        shape[value.row] = rw.count.meta["val"] + value.before
        with rw.fake_mode:
            fake = torch.empty(shape, dtype=padded.meta["val"].dtype)
        rows = rw.call(aten.slice.Tensor, padded, value.row, rw.start, _END, value=fake)
    return rw.copy(node, lambda n: rows if n is source else rw.now(n))  # type: ignore[no-any-return]
