"""Columns beside those of the keys: attention sinks, which take weight and give nothing.

They are joined to the scores, take part in the softmax, and are cut off its weights.
"""

from __future__ import annotations

from dataclasses import replace
from operator import getitem

import torch
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.masks import require_causal, require_seen
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import Kind, Value, arguments, bound_arguments

aten = torch.ops.aten

# Of all scores of a query. One that a mask has taken out changes none of them.
OVER_KEYS = {aten.amax.default, aten.max.dim, aten.logsumexp.default}
_CUTS = {aten.slice.Tensor, aten.narrow.default}


def classify_sink(rw: Rewriter, node: Node) -> Value:
    """Scores, and behind them columns that depend on no later token."""
    scores, *sinks = arguments(node)[0]
    value = rw.values[scores]
    dim = arguments(node)[1] if len(arguments(node)) > 1 else 0
    if node.target is not aten.cat.default or dim % node.meta["val"].dim() != value.col:
        raise NotCausalError(node, "scores are joined, but not along the keys")
    for sink in sinks:
        known = rw.values[sink]
        is_of_rows = known.kind is Kind.LENGTH or (known.kind, known.row) == (Kind.ROWS, value.row)
        if not is_of_rows or token_dims(sink.meta["val"], rw.symbol) != [value.row]:
            raise NotCausalError(node, f"scores are joined to {sink.name}, which is no sink")
    if value.shifted:
        raise NotCausalError(node, "scores that change with the number of tokens meet a sink")
    columns = sum(n.meta["val"].shape[value.col] for n in sinks)
    if not isinstance(columns, int):
        raise NotCausalError(node, f"{columns} sinks, which changes with the number of tokens")
    return replace(value, beside=value.beside + columns)


def classify_without_sink(rw: Rewriter, node: Node) -> Value:
    """The cut that leaves the keys' columns, all of them: their extent is the text's."""
    value = rw.values[arguments(node)[0]]
    given = bound_arguments(node) if node.target in _CUTS else {}
    rank = node.meta["val"].dim() if given else 1
    is_cut = given and given["dim"] % rank == value.col and given["start"] in (None, 0)
    if not is_cut or given.get("step", 1) != 1:
        raise NotCausalError(node, "columns beside those of the keys are not cut off")
    if value.col not in token_dims(node.meta["val"], rw.symbol):
        raise NotCausalError(node, "columns beside those of the keys are cut elsewhere")
    return replace(value, beside=0)


def classify_over_keys(rw: Rewriter, node: Node) -> Value | list[Value]:
    """The largest score of a query, or what softmax divides by."""
    value = rw.values[arguments(node)[0]]
    given = bound_arguments(node)["dim"]
    dims = given if isinstance(given, (list, tuple)) else [given]
    if [d % arguments(node)[0].meta["val"].dim() for d in dims] != [value.col]:
        raise NotCausalError(node, "scores that are not computed over the keys alone")
    if value.shifted:
        raise NotCausalError(node, "scores that change with the number of tokens")
    require_causal(rw, node, value.hidden)
    require_seen(rw, node, arguments(node)[0])
    if value.beside and any(
        user.args[1] == 1 and user.users for user in node.users if user.target is getitem
    ):
        raise NotCausalError(node, "the place of a largest score, beside columns of no key")
    fake = node.meta["val"]
    fakes = fake if isinstance(fake, (list, tuple)) else [fake]
    rows = [token_dims(v, rw.symbol) for v in fakes]
    if any(len(found) != 1 for found in rows):
        raise NotCausalError(node, "it may leave no dim of tokens")
    found = [Value(Kind.ROWS, dims[0]) for dims in rows]
    return found if isinstance(fake, (list, tuple)) else found[0]


def common_sinks(rw: Rewriter, node: Node) -> int:
    """How many columns all scores or weights of an elementwise operator have beside the keys'."""
    kinds = (Kind.SCORES, Kind.WEIGHTS)
    found = {rw.values[n].beside for n in node.all_input_nodes if rw._is(n, *kinds)}
    if len(found) > 1:
        raise NotCausalError(node, "scores with and without columns beside those of the keys")
    return int(found.pop()) if found else 0
