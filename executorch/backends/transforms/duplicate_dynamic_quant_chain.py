from __future__ import annotations

import operator

import torch
from torch.fx import Node

from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.torch_internals import define_quantized_operators

define_quantized_operators()
_quantized = torch.ops.quantized_decomposed
_CHOOSE = (_quantized.choose_qparams.tensor, _quantized.choose_qparams_symmetric.tensor)


class DuplicateDynamicQuantChainPass(CallPass):
    """Give every user of a dynamically quantized value its own chain, so that each user and its
    chain can become one delegated operator.

    Before    s, z = choose_qparams(x); d = dequantize(quantize(x, s, z), s, z); f(d); g(d)
    After     f(d) with one such chain, g(d') with a second one
    Requires  a captured graph, as convert_pt2e returns it.
    Ensures   equal values; the graph is edited in place.
    Leaves    static quantization: its dequantize nodes are operators of one constant.
    """

    def change(self, call: Node) -> bool:
        others = list(call.users)[1:] if _ends_dynamic_chain(call) else []
        for user in others:
            user.replace_input_with(call, _copy_chain(call, user))
        return bool(others)


def _ends_dynamic_chain(node: Node) -> bool:
    if node.target not in (
        _quantized.dequantize_per_tensor.tensor,
        _quantized.dequantize_per_tensor.default,
    ):
        return False
    return _chosen(node.args[1]) and isinstance(node.args[0], Node)


def _chosen(argument: object) -> bool:
    """Whether an argument is a result of choose_qparams."""
    if not isinstance(argument, Node) or argument.target is not operator.getitem:
        return False
    source = argument.args[0]
    return isinstance(source, Node) and source.target in _CHOOSE


def _copy_chain(dequantize: Node, user: Node) -> Node:
    """A copy of dequantize, quantize, their two parameters and choose_qparams, before `user`."""
    copies: dict[Node, Node] = {}

    def copy(node: Node) -> Node:
        if node not in copies:
            is_part = node in (dequantize, dequantize.args[0]) or _chosen(node)
            if not is_part and node.target not in _CHOOSE:
                return node
            inputs = {source: copy(source) for source in node.all_input_nodes}
            with user.graph.inserting_before(user):
                copies[node] = user.graph.node_copy(node, lambda n: inputs[n])
        return copies[node]

    return copy(dequantize)
