from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.pass_driver import GraphPass

_aten = torch.ops.aten
_attention = _aten.scaled_dot_product_attention.default
_OPTIONAL = (("attn_mask", None), ("dropout_p", 0.0), ("is_causal", False))


class DecomposeScaledDotProductAttention(GraphPass):
    """Take attention apart, for backends and quantizers that know its products.

    Before    y = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, scale)
    After     scores = matmul(q, transpose(k, -2, -1)) * scale, + mask or -inf where it is false
              y = matmul(softmax(scores, -1), v)
    Requires  torch's operators, before the edge dialect.
    Ensures   values equal within rounding; zeros where a mask hides all keys from a query. With
              enable_gqa, keys and values are repeated for the heads of queries.
    """

    def __init__(self, allow_non_fake_inputs: bool = True) -> None:
        """allow_non_fake_inputs  accepted, without effect: nothing is traced"""
        super().__init__()

    def edit_graph(self, graph_module: GraphModule) -> bool:
        found = graph_module.graph.find_nodes(op="call_function", target=_attention)
        for call in found:
            _decompose(call)
        return bool(found)


def _decompose(call: Node) -> None:
    q, k, v, *given = call.args
    options = dict(_OPTIONAL) | {"scale": None, "enable_gqa": False} | call.kwargs
    options |= dict(zip((name for name, _ in _OPTIONAL), given, strict=False))
    k, v = (_repeated(call, q, x, bool(options["enable_gqa"])) for x in (k, v))

    def add(target: Any, *args: Any) -> Node:
        return insert_before(call, target, args)

    scale: Any = options["scale"]
    if scale is None:
        scale = 1 / math.sqrt(_value(q).shape[-1])
    scores = add(_aten.matmul.default, q, add(_aten.transpose.int, k, -2, -1))
    scores = add(_aten.mul.Scalar, scores, scale)
    mask: Any = options["attn_mask"]
    softmax = _aten.softmax.int if mask is None else _aten._safe_softmax.default
    if options["is_causal"]:
        mask = _triangle(call, scores)
    if mask is not None and _value(mask).dtype is torch.bool:
        hidden = add(_aten.logical_not.default, mask)
        scores = add(_aten.masked_fill.Scalar, scores, hidden, -math.inf)
    elif mask is not None:
        scores = add(_aten.add.Tensor, scores, mask)
    weights = add(softmax, scores, -1)
    if options["dropout_p"]:
        weights = add(_aten.dropout.default, weights, options["dropout_p"], True)
    replace_node(call, add(_aten.matmul.default, weights, v))


def _value(node: Any) -> Tensor:
    value = node.meta.get("val")
    if value is None:
        raise RuntimeError(f"{node}: no fake value, which attention's decomposition needs")
    return value  # type: ignore[no-any-return]


def _repeated(call: Node, q: Any, x: Any, enable_gqa: bool) -> Any:
    """Keys or values with as many heads as the queries have."""
    if _value(q).dim() < 3:
        return x
    wanted, heads = _value(q).shape[-3], _value(x).shape[-3]
    if wanted == heads or (heads == 1 and not enable_gqa):
        return x
    if not enable_gqa or wanted % heads:
        raise ValueError(
            f"{call}: {wanted} heads of queries, {heads} of keys or values; expected as many, or"
            " with enable_gqa=True a divisor"
        )
    return insert_before(call, _aten.repeat_interleave.self_int, (x, wanted // heads, -3))


def _triangle(call: Node, scores: Node) -> Node:
    """A mask that hides later keys."""
    extents: list[Any] = list(_value(scores).shape[-2:])
    for place, extent in enumerate(extents):
        if not isinstance(extent, int):
            size = (scores, place - 2)
            extents[place] = insert_before(call, _aten.sym_size.int, size, value=extent)
    kwargs = {"dtype": torch.bool, "device": _value(scores).device}
    ones = insert_before(call, _aten.ones.default, (extents,), kwargs)
    return insert_before(call, _aten.tril.default, (ones,))
