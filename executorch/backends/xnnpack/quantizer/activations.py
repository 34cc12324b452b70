"""Which values of a captured graph are activations: what can be observed and quantized."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

aten = torch.ops.aten

# A constant with larger values is a mask's "minus infinity", no activation.
_LARGEST = 1e4

_MASKING = {aten.masked_fill.Scalar, aten.masked_fill.Tensor, aten.where.self}
_SUMS = {aten.add.Tensor, aten.add_.Tensor, aten.sub.Tensor, aten.sub_.Tensor}
_BOUNDED = {aten.softmax.int, aten._softmax.default, aten.sigmoid.default, aten.tanh.default}


def constant_of(node: Node) -> Tensor | None:
    """The tensor that a get_attr node reads."""
    if node.op != "get_attr":
        return None
    value: object = node.graph.owning_module
    for name in str(node.target).split("."):
        value = getattr(value, name, None)
    return value if isinstance(value, Tensor) else None


def is_dequantization(node: Node) -> bool:
    return node.op == "call_function" and "dequantize" in str(node.target)


def find_weights(graph_module: GraphModule) -> set[Node]:
    """Nodes that read a constant tensor, or are computed from such nodes only, so that they can be
    quantized ahead of time. Weights that are quantized already are left out."""
    found: set[Node] = set()
    for node in graph_module.graph.nodes:
        inputs = node.all_input_nodes
        computed = node.op == "call_function" and inputs and not is_dequantization(node)
        if constant_of(node) is not None or (computed and found.issuperset(inputs)):
            found.add(node)
    return found


Types = Collection[torch.dtype]
FLOAT32: Types = (torch.float32,)


def is_float(node: object, types: Types = FLOAT32) -> bool:
    """Whether a node's value is a tensor of one of the types, which are quantized."""
    return isinstance(node, Node) and _is_float(_value_of(node), types)


def _value_of(node: Node) -> object:
    value = node.meta.get("val")
    return constant_of(node) if value is None else value


def _is_float(value: object, types: Types) -> bool:
    return isinstance(value, Tensor) and value.dtype in types


def _has_floats(node: Node, types: Types) -> bool:
    """Whether a node's value is such a tensor, or several (as of a split)."""
    value = _value_of(node)
    values = value if isinstance(value, (list, tuple)) else [value]
    return all(_is_float(each, types) for each in values)


def is_moderate(value: float | Tensor) -> bool:
    """Whether a constant is finite, and small enough to be quantized to eight bits together with
    activations."""
    return bool(torch.as_tensor(value).detach().abs().amax() <= _LARGEST)


def is_number(node: Node) -> bool:
    """Whether a node reads a constant of one element."""
    value = constant_of(node)
    return value is not None and value.numel() == 1


def find_activations(graph_module: GraphModule, types: Types = FLOAT32) -> set[Node]:
    """Float values that carry signal: inputs, weights, what is computed from them, and what was
    quantized before.

    Left out is arithmetic of masks: floats made from integers or comparisons alone, constants like
    minus infinity, and what such a mask has been added to, until a softmax bounds it again. One
    mask among the observed values would leave no bit for the others.
    """
    found: set[Node] = set()
    for node in graph_module.graph.nodes:
        if node.op == "output" or not _has_floats(node, types):
            continue
        constant = constant_of(node)
        if constant is not None:
            if constant.numel() > 1 and is_moderate(constant):
                found.add(node)
        elif node.op == "placeholder" or _carries_signal(node, found, types):
            found.add(node)
    return found


def _carries_signal(node: Node, found: set[Node], types: Types) -> bool:
    if node.target in _BOUNDED or is_dequantization(node):
        return True
    inputs = (n for n in node.all_input_nodes if _has_floats(n, types) and not is_number(n))
    known = [n in found for n in inputs]
    if not any(known) or node.target in _MASKING:
        return False
    return all(known) or node.target not in _SUMS
