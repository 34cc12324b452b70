"""Edits of a graph in place, which passes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from executorch.exir.tensor import CHANNELS_LAST, dim_order_of
from executorch.exir.torch_internals import (
    FakeTensorMode,
    detect_fake_mode,
    enable_python_dispatcher,
)

# Metadata that a node made from another one inherits: the user's line, and where it came from.
_PROVENANCE = (
    "stack_trace",
    "nn_module_stack",
    "source_fn_stack",
    "torch_fn",
    "original_aten",
    "from_node",
    "seq_nr",
    "debug_handle",
)


def value_of(argument: Any) -> Any:
    """`argument` with every node replaced by its fake value."""
    return map_arg(argument, lambda n: n.meta.get("val"))


def compute_value(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    beside: Any = None,
) -> Any:
    """The fake result of calling `target` on arguments that may be nodes; if none is a tensor, one
    that can be used with the value `beside`."""
    fake_args, fake_kwargs = value_of(tuple(args)), value_of(dict(kwargs or {}))
    mode = detect_fake_mode((fake_args, fake_kwargs, beside))
    if mode is None:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, enable_python_dispatcher(), torch.no_grad():
        return target(*fake_args, **fake_kwargs)


def provenance(node: Node) -> dict[str, Any]:
    """The part of a node's metadata that tells where it came from."""
    return {k: node.meta[k] for k in _PROVENANCE if k in node.meta}


def insert_before(
    anchor: Node,
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    value: Any = None,
) -> Node:
    """Add a call before `anchor`, with its provenance and its (given or computed) fake value."""
    graph: Graph = anchor.graph
    with graph.inserting_before(anchor):
        node = graph.call_function(target, tuple(args), dict(kwargs or {}))
    node.meta = provenance(anchor)
    if value is None:
        value = compute_value(target, args, kwargs, beside=anchor.meta.get("val"))
    node.meta["val"] = value
    return node


def replace_node(old: Node, new: Node) -> None:
    """Give `new` all users of `old` and erase `old`."""
    old.replace_all_uses_with(new)
    old.graph.erase_node(old)


def attribute_of(module: torch.nn.Module, target: str) -> Any:
    """What a `get_attr` node of that target reads."""
    for part in target.split("."):
        module = getattr(module, part)
    return module


def same_extent(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for certain, without adding a guard."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, torch.SymInt) and isinstance(b, torch.SymInt):
        return bool(a.node.expr == b.node.expr)
    return False


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(same_extent(x, y) for x, y in zip(a, b, strict=True))


def is_droppable(node: Node, value: Node) -> bool:
    """Whether users of `node` may read `value` instead, both computing the same.

    A graph output stays an own tensor: it must not become an input or a second output.
    """
    if all(u.op != "output" for u in node.users):
        return True
    return value.op not in ("placeholder", "get_attr") and all(
        u.op != "output" for u in value.users
    )


def exact_sizes(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Extents or strides that can be compared and hashed without adding a guard."""
    return tuple([s.node.expr if isinstance(s, torch.SymInt) else s for s in sizes])


def layout_key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal, and hashable, for tensors of the same dtype, device, shape and strides."""
    return tensor.dtype, tensor.device, exact_sizes(tensor.shape), exact_sizes(tensor.stride())


def same_layout(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether dtype, device, shape and strides are the same; adds no guards."""
    return layout_key(before) == layout_key(after)


def _in_order(tensor: torch.Tensor, order: list[int]) -> bool:
    """Whether the strides are those of a dense tensor in `order`; adds no guards."""
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
    """Dense in channels-last order. Extents of 1 may make it contiguous at the same time; then it
    is what `dim_order_of` says, as in programs."""
    if tensor.dim() != len(CHANNELS_LAST) or not _in_order(tensor, list(CHANNELS_LAST)):
        return False
    return not is_contiguous(tensor) or dim_order_of(tensor) == CHANNELS_LAST
