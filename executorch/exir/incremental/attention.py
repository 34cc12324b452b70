"""The fused attention operator."""

from __future__ import annotations

import math

import torch
from torch.fx import Node

from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.masks import (
    all_later,
    hidden_by_mask,
    require_causal,
    require_seen,
    where_bounds,
)
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.values import Kind, Value, bound_arguments

aten = torch.ops.aten


def classify_attention(rw: Rewriter, node: Node) -> Value:
    given = bound_arguments(node)
    rank = node.meta["val"].dim()
    if _is_fixed(rw, given["key"], given["value"]):
        return _classify_cross(rw, node)
    for name in ("query", "key", "value"):
        value = rw.values[given[name]]
        if value.kind is not Kind.ROWS or value.row != given[name].meta["val"].dim() - 2:
            raise NotCausalError(node, f"{name}: its dim of tokens is not the last but one")
    mask = given["attn_mask"]
    if mask is None:
        if not given["is_causal"]:
            raise NotCausalError(node, "no mask keeps a token from attending to later ones")
        return Value(Kind.ROWS, rank - 2)
    if rw.values[mask].kind is Kind.SCORES and not given["is_causal"]:
        return _classify_biased(rw, node, mask)
    if rw.values[mask].kind not in (Kind.FIXED, Kind.LENGTH):
        raise NotCausalError(node, "its mask depends on tokens")
    if rw.values[mask].kind is Kind.LENGTH:
        rw.lengths.prove([mask])
    if not given["is_causal"] and (mask, rank) not in rw.causal_masks:
        require_causal(rw, node, hidden_by_mask(rw, node, mask, rank))
        rw.causal_masks.add((mask, rank))
    return Value(Kind.ROWS, rank - 2)


def _classify_biased(rw: Rewriter, node: Node, mask: Node) -> Value:
    """Of a mask that is scores, too, such as of distances that a query weighs."""
    value, rank = rw.values[mask], mask.meta["val"].dim()
    if (value.row, value.col) != (rank - 2, rank - 1) or value.beside or value.shifted:
        raise NotCausalError(node, "its mask is no scores of queries and keys, in this order")
    least = 0.0 if mask.meta["val"].dtype == torch.bool else -math.inf
    if not all_later(rw, where_bounds(rw, mask, lambda _, high: high == least)):
        require_causal(rw, node, value.hidden)
        require_seen(rw, node, mask)
    return Value(Kind.ROWS, node.meta["val"].dim() - 2)


def _is_fixed(rw: Rewriter, *nodes: Node) -> bool:
    return all(rw.values[n].kind is Kind.FIXED for n in nodes)


def _classify_cross(rw: Rewriter, node: Node) -> Value:
    """Of keys and values that depend on nothing: each token's result is of its query alone."""
    given = bound_arguments(node)
    query, mask = given["query"], given["attn_mask"]
    value, rank = rw.values[query], node.meta["val"].dim()
    if value.kind is not Kind.ROWS or value.row != query.meta["val"].dim() - 2:
        raise NotCausalError(node, "query: its dim of tokens is not the last but one")
    if given["is_causal"] or (mask is not None and not _is_fixed(rw, mask)):
        raise NotCausalError(node, "keys that are no tokens', with a mask of tokens")
    return Value(Kind.ROWS, rank - 2)


def make_attention(rw: Rewriter, node: Node) -> Node:
    """New queries against all keys, with the rows of the mask that are theirs."""
    given = bound_arguments(node)
    query = rw.rows(given["query"])
    if _is_fixed(rw, given["key"]):
        return rw.copy(node, lambda n: query if n is given["query"] else rw.now(n))  # type: ignore[no-any-return]
    key, value = rw.full(given["key"]), rw.full(given["value"])
    mask = _mask(rw, node, given["attn_mask"])
    options = {"scale": given["scale"], "enable_gqa": given.get("enable_gqa", False)}
    kwargs = {k: v for k, v in options.items() if v not in (None, False)}
    return rw.call(
        aten.scaled_dot_product_attention.default, query, key, value, mask, 0.0, False, **kwargs
    )


def _mask(rw: Rewriter, node: Node, given: Node | None) -> Node:
    if given is not None:
        rank = given.meta["val"].dim()
        if rw.values[given].kind is Kind.SCORES:
            return rw.rows(given)  # type: ignore[no-any-return]
        if rw.values[given].kind is Kind.LENGTH:
            return rw.table(given, {rank - 2: "row", rank - 1: "col"})
        return rw.now(given)
    key = (f"causal {node.meta['val'].dtype}", rw.tokens)
    if key not in rw.new:
        # Additive, once for all layers.
        like = torch.empty(1, 1, dtype=node.meta["val"].dtype)
        values = (torch.tensor(0.0), torch.tensor(-math.inf))
        rw.new[key] = rw.mask({"row": 0, "col": 1}, like, rw.maximum, *values)
    return rw.new[key]
