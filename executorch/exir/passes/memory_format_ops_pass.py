from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.dim_order_utils import get_dim_order, get_memory_format
from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.torch_internals import rename_after_target

_edge = ops.edge
_REPLACEMENTS = {
    _edge.aten._to_copy.default: _edge.dim_order_ops._to_dim_order_copy.default,
    _edge.aten.clone.default: _edge.dim_order_ops._clone_dim_order.default,
    _edge.aten.empty.memory_format: _edge.dim_order_ops._empty_dim_order.default,
}


class MemoryFormatOpsPass(GraphEdit):
    """Turn memory formats into dim orders.

    Before    y = aten.clone(x, memory_format=channels_last)
    After     y = dim_order_ops._clone_dim_order(x, dim_order=[0, 2, 3, 1])
    Requires  edge operators.
    Ensures   equal values; an absent or preserving format becomes the dim order of the input.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        modified = False
        for node in graph.nodes:
            replacement = _REPLACEMENTS.get(node.target) if node.op == "call_function" else None
            if replacement is None:
                continue
            kwargs = dict(node.kwargs)
            memory_format = kwargs.pop("memory_format", None)
            kwargs["dim_order"] = _dim_order(node, memory_format)
            node.kwargs = kwargs
            node.target = replacement
            rename_after_target(node)
            modified = True
        return modified


class DimOrderOpsRevertPass(GraphEdit):
    """Turn dim orders back into memory formats.

    Before    y = dim_order_ops._clone_dim_order(x, dim_order=[0, 2, 3, 1])
    After     y = aten.clone(x, memory_format=channels_last)
    Ensures   equal values; without a dim order, the contiguous format.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        originals = {new: old for old, new in _REPLACEMENTS.items()}
        modified = False
        for node in graph.nodes:
            original = originals.get(node.target) if node.op == "call_function" else None
            if original is None:
                continue
            kwargs = dict(node.kwargs)
            dim_order = kwargs.pop("dim_order", None)
            order = list(range(node.meta["val"].dim())) if dim_order is None else list(dim_order)
            kwargs["memory_format"] = get_memory_format(order)
            node.kwargs = kwargs
            node.target = original
            rename_after_target(node)
            modified = True
        return modified


def _dim_order(node: Node, memory_format: torch.memory_format | None) -> list[int]:
    value = node.meta["val"]
    source = node.args[0] if node.args else None
    if memory_format in (None, torch.preserve_format) and isinstance(source, Node):
        if is_channels_last(source.meta["val"]):
            memory_format = torch.channels_last
        elif not is_contiguous(source.meta["val"]):
            node.meta["val"] = value.contiguous()
    return get_dim_order(memory_format, value.dim())


def _in_order(tensor: torch.Tensor, order: list[int]) -> bool:
    """Whether the strides are those of a dense tensor in `order`; adds no guards."""
    from executorch.exir.graph.graph_edit import same_extent

    expected: int | torch.SymInt = 1
    for dim in reversed(order):
        size, stride = tensor.shape[dim], tensor.stride(dim)
        if not same_extent(size, 1) and not same_extent(stride, expected):
            return False
        expected = expected * size
    return True


def is_contiguous(tensor: torch.Tensor) -> bool:
    return _in_order(tensor, list(range(tensor.dim())))


def is_channels_last(tensor: torch.Tensor) -> bool:
    """Dense in channels-last order and not contiguous at the same time."""
    return tensor.dim() == 4 and not is_contiguous(tensor) and _in_order(tensor, [0, 2, 3, 1])
