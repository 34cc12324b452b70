"""Results of elementwise operators that may lie where an operand does."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import GraphModule, Node

from executorch.exir import memory
from executorch.exir.error import InternalError
from executorch.exir.graph.graph_edit import same_shape
from executorch.exir.graph.operator_kind import is_out_variant, overload_of
from executorch.exir.tensor import TensorSpec
from executorch.exir.tensor_lifetimes import get_node_tensor_specs, storage_of
from executorch.exir.torch_internals import schema_of

# Element i of the result depends on element i of each operand of the result's shape, and is written
# after they were read, whatever kernels compute it.
_ELEMENTWISE = frozenset(
    f"aten::{name}"
    for name in (
        *("abs", "ceil", "clamp", "cos", "elu", "erf", "exp", "floor", "gelu", "hardtanh"),
        *("leaky_relu", "log", "logical_not", "neg", "reciprocal", "relu", "round", "rsqrt"),
        *("sigmoid", "sign", "sin", "sqrt", "tanh", "trunc"),
        *("add", "sub", "mul", "div", "maximum", "minimum", "pow", "where"),
        *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)


def share_storage(graph_module: GraphModule, planned: Iterable[TensorSpec]) -> list[TensorSpec]:
    """Let results of elementwise operators lie where an operand does that nothing reads later.

    Sets `storage_base` of the specs it returns; the lifetime of the base becomes that of all that
    lies in it. Operands qualify if operators wrote them into memory among `planned`, and have the
    result's type, shape and order. Requires lifetimes, and out variants.
    """
    allocated = {
        spec
        for node in graph_module.graph.find_nodes(op="call_function", target=memory.alloc)
        for spec in get_node_tensor_specs(node)
    } & set(planned)
    shared: list[TensorSpec] = []
    for index, node in enumerate(graph_module.graph.nodes):
        op = overload_of(node.target) if node.op == "call_function" else None
        if op is None or schema_of(op).name not in _ELEMENTWISE or not is_out_variant(op):
            continue
        result = node.meta["spec"]
        operand = _dying_operand(node, index, allocated) if result in allocated else None
        if operand is not None:
            base = operand.storage_base or operand
            result.storage_base = base
            base.lifetime = [base.lifetime[0], max(base.lifetime[1], result.lifetime[1])]
            shared.append(result)
    return shared


def _dying_operand(node: Node, index: int, allocated: set[TensorSpec]) -> TensorSpec | None:
    """The memory of an operand that the result may take over."""
    result, value = node.meta["spec"], node.meta["val"]
    same: list[TensorSpec] = []
    other: set[TensorSpec] = set()
    for operand in node.args:
        if not isinstance(operand, Node) or not isinstance(operand.meta.get("val"), torch.Tensor):
            continue
        spec = operand.meta["spec"]
        fits = (
            spec.dtype == result.dtype
            and spec.dim_order == result.dim_order
            and same_shape(operand.meta["val"].shape, value.shape)
        )
        (same.append if fits else other.add)(storage_of(spec))
    for storage in same:
        if storage in allocated and storage not in other and storage.lifetime[1] == index:
            return storage
    return None


def owners_and_nested(specs: Iterable[TensorSpec]) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Specs with memory of their own, and those that lie in others of `specs`, bases first."""
    specs = list(specs)
    known = set(specs)
    owners = [s for s in specs if s.storage_base not in known]
    nested: list[TensorSpec] = []
    waiting = [s for s in specs if s.storage_base in known]
    placed = set(owners)
    while waiting:
        ready = [s for s in waiting if s.storage_base in placed]
        if not ready:
            raise InternalError(f"storage_base goes in a circle: {waiting[0].debug()}")
        nested += ready
        placed.update(ready)
        waiting = [s for s in waiting if s not in placed]
    return owners, nested


def extend_lifetimes_of_bases(specs: Iterable[TensorSpec]) -> None:
    """Let memory be alive as long as anything of `specs` that lies in it."""
    for spec in reversed(owners_and_nested(specs)[1]):
        base = spec.storage_base
        assert base is not None
        (first, last), (begin, end) = spec.lifetime, base.lifetime
        base.lifetime = [min(first, begin), max(last, end)]


def unshare(shared: Iterable[TensorSpec]) -> None:
    for spec in shared:
        spec.storage_base = None


def place_shared(graph_module: GraphModule) -> None:
    """Give the specs that lie in others their base's place."""
    for node in graph_module.graph.find_nodes(op="call_function", target=memory.alloc):
        for spec in get_node_tensor_specs(node):
            base = spec.storage_base
            if base is not None and base.mem_offset is not None:
                spec.mem_id, spec.mem_obj_id = base.mem_id, base.mem_obj_id
                spec.mem_offset = base.mem_offset + spec.storage_base_offset
