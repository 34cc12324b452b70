"""What kind of thing a call_function node calls."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from executorch.exir import memory
from executorch.exir.torch_internals import (
    HigherOrderOperator,
    OpOverload,
    op_name,
    schema_of,
    tree_leaves,
)

# Functions that make no kernel call: they name memory or pick a result.
STRUCTURAL = frozenset({memory.alloc, memory.view, memory.free, operator.getitem})

_aten = torch.ops.aten
# Symbolic sizes, assertions and scalars: they stay plain torch operators in every dialect.
UNWRAPPED = frozenset(
    {
        _aten.sym_size.int,
        _aten.sym_stride.int,
        _aten.sym_numel.default,
        _aten.sym_storage_offset.default,
        _aten._local_scalar_dense.default,
        _aten.sym_constrain_range.default,
        _aten.sym_constrain_range_for_size.default,
        _aten._assert_scalar.default,
        _aten._assert_async.default,
        _aten._assert_async.msg,
        _aten.scalar_tensor.default,
        operator.getitem,
    }
)

_FLOAT8 = frozenset(
    {torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz}
)

_SYMBOLIC = frozenset(
    {
        "aten::sym_size.int",
        "aten::sym_stride.int",
        "aten::sym_numel",
        "aten::sym_storage_offset",
        "aten::_local_scalar_dense",
    }
)


def overload_of(target: Any) -> OpOverload | None:
    """The torch overload behind an edge operator, a backend operator or the overload itself."""
    if isinstance(target, OpOverload):
        return target
    op = getattr(target, "_op", None)
    return op if isinstance(op, OpOverload) else None


def is_unwrapped(target: Any) -> bool:
    """Whether the edge dialect has `target` as it is."""
    return not isinstance(target, OpOverload) or target in UNWRAPPED


def is_delegate_call(node: Node) -> bool:
    return is_higher_order(node) and node.target.name() == "executorch_call_delegate"  # type: ignore[union-attr]


def is_symbolic(op: OpOverload) -> bool:
    """Whether the operator computes a number, which needs no memory."""
    return op.namespace == "executorch_prim" or op.name() in _SYMBOLIC


def is_out_variant(op: OpOverload) -> bool:
    return any(a.is_out for a in schema_of(op).arguments)


def is_inplace(op: OpOverload) -> bool:
    """Whether the operator writes into one of its inputs, and returns nothing but that."""
    schema = schema_of(op)
    fresh = any(result.alias_info is None for result in schema.returns)
    return schema.is_mutable and not fresh and not is_out_variant(op)


def written_arguments(node: Node, op: OpOverload) -> list[Node]:
    """The nodes whose memory an in-place operator or out variant writes."""
    written = []
    for i, argument in enumerate(schema_of(op).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            written += [n for n in tree_leaves(value) if isinstance(n, Node)]
    return written


def is_higher_order(node: Node) -> bool:
    return isinstance(node.target, HigherOrderOperator)


def makes_contiguous(node: Node) -> bool:
    """Whether `node` is a view copy: its result is contiguous, whatever strides a view has."""
    op = overload_of(node.target) if node.op == "call_function" else None
    if op is None or op.namespace != "aten":
        return False
    return op_name(op).endswith("_copy") and op_name(op) != "_to_copy"


def converts_float8(node: Node) -> bool:
    """Whether `node` has float8 and another floating type among its operands and results. Kernels
    move float8; none computes with it."""
    values = [n.meta.get("val") for n in (*node.all_input_nodes, node)]
    dtypes = {v.dtype for v in tree_leaves(values) if isinstance(v, torch.Tensor)}
    return not dtypes.isdisjoint(_FLOAT8) and sum(d.is_floating_point for d in dtypes) > 1
