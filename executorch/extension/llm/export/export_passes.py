"""Passes over exported graphs of language models, before `to_edge`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import insert_before, replace_node, same_extent
from executorch.exir.graph.pass_driver import GraphPass
from executorch.exir.passes.remove_dead_code import remove_dead_code

aten = torch.ops.aten


def _order_of(node: Node) -> list[int] | None:
    """The dims that a transpose or permute gives, if `node` is one."""
    if node.op != "call_function" or node.target not in (aten.transpose.int, aten.permute.default):
        return None
    n = node.meta["val"].dim()
    if node.target is aten.permute.default:
        return [int(d) % n for d in node.args[1]]  # type: ignore[union-attr, arg-type]
    order = list(range(n))
    if n > 0:
        a, b = (int(d) % n for d in node.args[1:3])  # type: ignore[arg-type]
        order[a], order[b] = order[b], order[a]
    return order


class RemoveRedundantTransposes(GraphPass):
    """Remove two transposes, or permutes, that undo each other.

    Before    y = transpose(x, 1, 2); z = transpose(y, 1, 2)
    After     z is x
    Requires  operators on views, as torch.export gives them.
    Ensures   equal values.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        changed = False
        for node in list(graph_module.graph.nodes):
            second = _order_of(node)
            above = node.args[0] if second is not None else None
            first = _order_of(above) if isinstance(above, Node) else None
            if second is None or first is None or [first[d] for d in second] != sorted(first):
                continue
            replace_node(node, above.args[0])  # type: ignore[union-attr, arg-type]
            changed = True
        if changed:
            remove_dead_code(graph_module)
        return changed


class ReplaceSDPAWithCustomSDPAPass(GraphPass):
    """Put `llama.custom_sdpa` in the place of attention.

    Before    y = scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal, scale=scale)
    After     y = transpose(custom_sdpa(transpose(q), ..., 0, mask, 0.0, is_causal, scale))
    Requires  operators as torch.export gives them.
    Ensures   equal values; with `assume_causal_mask`, where every mask means a causal one.
    Leaves    attention with dropout, with other than 4 dimensions, with a mask for each head or
              batch entry, and without a mask over more or fewer keys than queries.
    """

    def __init__(self, assume_causal_mask: bool = False) -> None:
        self.assume_causal_mask = assume_causal_mask

    def edit_graph(self, graph_module: GraphModule) -> bool:
        from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401

        calls = graph_module.graph.find_nodes(
            op="call_function", target=aten.scaled_dot_product_attention.default
        )
        return any([self._replace(call) for call in calls])

    def _replace(self, call: Node) -> bool:
        arguments: list[Any] = [*call.args, *(None, 0.0, False)[len(call.args) - 3 :]]
        given = dict(zip(("attn_mask", "dropout_p", "is_causal"), arguments[3:], strict=True))
        given |= {k: v for k, v in call.kwargs.items() if k in given}
        mask, causal = given["attn_mask"], given["is_causal"]
        if self.assume_causal_mask:
            mask, causal = None, True
        if given["dropout_p"] != 0.0 or not _fits(arguments[:3], mask, causal):
            return False

        def add(target: Callable[..., Any], *args: Any) -> Node:
            return insert_before(call, target, args)

        def swapped(x: Node) -> Node:
            return add(aten.contiguous.default, add(aten.transpose.int, x, 1, 2))

        if mask is not None and mask.meta["val"].dim() > 2:
            mask = add(aten.squeeze.dims, mask, list(range(mask.meta["val"].dim() - 2)))
        heads_last = [swapped(x) for x in arguments[:3]]
        scale = call.kwargs.get("scale")
        attention = torch.ops.llama.custom_sdpa.default
        result = add(attention, *heads_last, 0, mask, 0.0, causal, scale)
        replace_node(call, swapped(result))
        return True


def _fits(operands: list[Any], mask: Node | None, causal: bool) -> bool:
    q, k, v = (x.meta["val"] for x in operands)
    if not q.dim() == k.dim() == v.dim() == 4 or not same_extent(k.size(3), v.size(3)):
        return False
    if mask is None:
        return same_extent(q.size(2), k.size(2))
    shape = mask.meta["val"].shape
    one = all(same_extent(size, 1) for size in shape[:-2])
    whole = len(shape) >= 2 and same_extent(shape[-2], q.size(2))
    return not causal and one and whole and same_extent(shape[-1], k.size(2))
