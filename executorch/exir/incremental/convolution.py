"""Causal convolutions: tokens are padded before the first, and each is convolved with those before.

The padded value itself is never kept or cut: the convolution takes the part of it that its rows
need. A convolution that pads as much on both sides itself gives more results than there are tokens;
the first are those of the tokens, and have to be cut out. It is made where they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.rewriter import FULL, Rewriter
from executorch.exir.incremental.values import Kind, Value, arguments

aten = torch.ops.aten

PADDINGS = {aten.constant_pad_nd.default, aten.pad.default}
# Where their stride, padding and dilation are.
CONVOLUTIONS = {aten.conv1d.default: (3, 4, 5), aten.convolution.default: (3, 4, 5)}
_DEFAULTS = (1, 0, 1)
_PADDING = 4
CUTS = {aten.slice.Tensor, aten.narrow.default}
_END = 2**63 - 1
_LONGER = "a convolution padded on both sides gives entries that look beyond the last token"


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
    if isinstance(before, int) and before == -behind > 0:
        return Value(Kind.ROWS, value.row)  # moved on by as many
    if not isinstance(before, int) or before < 0 or behind != 0:
        raise NotCausalError(node, "tokens are padded elsewhere than before the first")
    return Value(Kind.PADDED, value.row, before=before)


def classify_padding_by_join(rw: Rewriter, node: Node, row: int) -> Value:
    """Of tokens behind a constant."""
    before, *tokens = arguments(node)[0]
    extent = before.meta["val"].shape[row]
    if [rw.values[n].kind for n in tokens] != [Kind.ROWS] or not rw._is(before, Kind.FIXED):
        raise NotCausalError(
            node,
            "values are joined along the tokens; F.pad(x, (0, 0, 1, -1)) of [batch, tokens, "
            "channels] moves each token on by one place",
        )
    return Value(Kind.PADDED, row, before=int(extent))


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
    if stride == 1 and padding == seen > 0 and value.kind is Kind.ROWS and not transposed:
        return Value(Kind.LONGER, 2)
    if stride != 1 or padding != 0 or transposed or seen != value.before:
        raise NotCausalError(
            node,
            f"a convolution over {seen + 1} tokens whose operand has {value.before} entries before "
            f"the first; stride {stride}, padding {padding}; a causal one has {seen}, 1 and 0",
        )
    return Value(Kind.ROWS, 2)


def classify_cut(rw: Rewriter, node: Node) -> Value:
    """Of a convolution that is longer than the text: the tokens' results, all of them and no other.
    Its own extent says so, which is the text's only if nothing else is left."""
    if node.target not in CUTS:
        raise NotCausalError(node, f"{_LONGER}, and it does not cut them off")
    given = [*arguments(node), None, None, None]
    is_last = given[1] in (2, -1) and given[2] in (None, 0)
    step = given[4] if node.target is aten.slice.Tensor else 1
    if not is_last or step not in (None, 1) or token_dims(node.meta["val"], rw.symbol) != [2]:
        raise NotCausalError(node, f"{_LONGER}, and it cuts out others than the tokens'")
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
        rows = _last_entries(rw, copy_of_all(rw, source), value.row, value.before)
    return rw.copy(node, lambda n: rows if n is source else rw.now(n))  # type: ignore[no-any-return]


def copy_of_all(rw: Rewriter, node: Node) -> Any:
    """What the original computes of all tokens."""
    return rw.copy(node, lambda n: rw.full(n) if rw._is(n, Kind.ROWS) else rw.now(n), FULL)


def make_cut(rw: Rewriter, node: Node) -> Node:
    """The rows of the convolution that `node` cuts: padded before the first token instead."""
    convolution = arguments(node)[0]
    source, *others = arguments(convolution)
    before = _single(others[_PADDING - 1])
    padded = rw.call(aten.constant_pad_nd.default, rw.full(source), [before, 0], 0)
    others[_PADDING - 1] = [0]
    others = [rw.now(a) if isinstance(a, Node) else a for a in others]
    return rw.call(convolution.target, _last_entries(rw, padded, 2, before), *others)


def _last_entries(rw: Rewriter, padded: Node, dim: int, before: int) -> Node:
    """Of all tokens with `before` entries before them: those that the rows are computed from."""
    shape = list(padded.meta["val"].shape)
    shape[dim] = rw.count.meta["val"] + before
    with rw.fake_mode:
        fake = torch.empty(shape, dtype=padded.meta["val"].dtype)
    return rw.call(aten.slice.Tensor, padded, dim, rw.start, _END, value=fake)
