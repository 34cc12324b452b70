"""The pattern table: passes of one rule, each a row.

A row has the public name of the pass and the operators that it looks at, each with the function
that changes one call of it, or leaves it. A rule without operators looks at every call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops
from executorch.exir.dialects.edge._ops import edge_op
from executorch.exir.dim_order_utils import get_dim_order, get_memory_format
from executorch.exir.graph.graph_edit import (
    insert_before,
    is_channels_last,
    is_contiguous,
    is_droppable,
    provenance,
    replace_node,
    same_extent,
    same_layout,
)
from executorch.exir.graph.operands import (
    dtype_beside,
    operands,
    promoted_dtype,
    scalar_operands,
    symbolic_operands,
)
from executorch.exir.graph.operator_kind import is_unwrapped
from executorch.exir.graph.pass_driver import CallPass, GraphPass
from executorch.exir.graph.program_view import Dialect
from executorch.exir.passes.remove_dead_code import remove_dead_code
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import (
    ReplaceBrokenOpsWithFunctionalOpsPass,
)
from executorch.exir.torch_internals import detect_fake_mode, find_schema, rename_after_target

_aten = torch.ops.aten
_edge = ops.edge
_ATEN = frozenset({Dialect.ATEN})
_EDGE = frozenset({Dialect.EDGE})

# What rules are made of.


def erase(call: Node) -> bool:
    call.graph.erase_node(call)
    return True


def retarget(target: Any) -> Callable[[Node], bool]:
    """Call another operator on the same arguments."""

    def rule(call: Node) -> bool:
        call.target = target
        return True

    return rule


def drop_if(changes_nothing: Callable[[Node], bool], operand: int = 0) -> Callable[[Node], bool]:
    """Let readers read the operand where the call gives that; a graph output that would become an
    input or a second output stays."""

    def rule(call: Node) -> bool:
        given: Any = call.args[operand]
        if not changes_nothing(call) or not is_droppable(call, given):
            return False
        replace_node(call, given)
        return True

    return rule


def keeps_layout(call: Node, operand: int = 0) -> bool:
    return same_layout(call.args[operand].meta["val"], call.meta["val"])  # type: ignore[union-attr]


# Before edge operators.


class RemoveNonCoreAtenOpGraphAssertsPass(CallPass):
    """Drop `aten._assert_tensor_metadata`: dtypes and devices are fixed ahead of time."""

    takes = _ATEN
    rules = {_aten._assert_tensor_metadata.default: erase}


class ReplaceSymSizeOpPass(CallPass):
    """Turn the packets of symbolic sizes, strides and offsets into their overloads."""

    takes = _ATEN
    rules = {
        _aten.sym_size: retarget(_aten.sym_size.int),
        _aten.sym_stride: retarget(_aten.sym_stride.int),
        _aten.sym_numel: retarget(_aten.sym_numel.default),
        _aten.sym_storage_offset: retarget(_aten.sym_storage_offset.default),
    }


def _copy_transposed(call: Node) -> bool:
    call.meta["val"] = call.meta["val"].contiguous()
    return retarget(_aten.t_copy.default)(call)


class NormalizeTransposePass(CallPass):
    """Turn `aten.t` into `aten.t_copy`."""

    takes = _ATEN
    rules = {_aten.t.default: _copy_transposed}


class ScalarToTensorPass(CallPass):
    """Turn Python numbers in places for tensors into constant tensors.

    Before    y = aten.add.Tensor(x, 2)
    After     c = get_attr[_tensor_constant0]; y = aten.add.Tensor(x, c)
    Ensures   equal values and dtypes: c is rank 0 and has the dtype that 2 takes beside x, so no
              cast is left to do at run time.
    """

    takes = _ATEN

    def change(self, call: Node) -> bool:
        found = list(scalar_operands(call))
        for number, replace in found:
            replace(_constant(call, number))
        return bool(found)


def _constant(user: Node, number: Any) -> Node:
    """A `get_attr` node before `user` that reads the number as a tensor, kept on the module."""
    try:
        tensor = torch.tensor(number, dtype=dtype_beside(user, number))
    except (RuntimeError, OverflowError):  # too large for that dtype; let promotion widen it
        tensor = torch.tensor(number)
    module: Any = user.graph.owning_module
    name = f"_tensor_constant{sum(1 for _ in module.named_buffers(recurse=False))}"
    while hasattr(module, name):
        name += "_"
    module.register_buffer(name, tensor)
    with user.graph.inserting_before(user):
        node = user.graph.create_node("get_attr", name, (), {})
    mode = detect_fake_mode([n.meta.get("val") for n in user.all_input_nodes])
    value = tensor if mode is None else mode.from_tensor(tensor, static_shapes=True)
    node.meta = {**provenance(user), "val": value}
    return node


class SymToTensorPass(CallPass):
    """Turn symbolic numbers in places for tensors into tensors.

    Before    y = aten.mul.Tensor(x, s)         s: a SymInt
    After     t = aten.scalar_tensor(s, dtype); y = aten.mul.Tensor(x, t)
    Ensures   equal values and dtypes: t has the dtype that s takes beside x.
    """

    takes = _ATEN

    def change(self, call: Node) -> bool:
        found = list(symbolic_operands(call))
        for operand, replace in found:
            kwargs = {"dtype": dtype_beside(call, operand.meta["val"])}
            replace(insert_before(call, _aten.scalar_tensor.default, (operand,), kwargs))
        return bool(found)


def _is_full_slice(call: Node) -> bool:
    if call.kwargs:
        return False
    given: tuple[Any, ...] = call.args
    defaults: tuple[Any, ...] = (0, None, None, 1)
    dim, start, end, step = given[1:] + defaults[len(given) - 1 :]
    if start not in (0, None) or step != 1 or not isinstance(dim, int):
        return False
    extent = call.args[0].meta["val"].shape[dim]  # type: ignore[union-attr]
    whole = end is None or (isinstance(end, int) and end >= 2**63 - 1)
    whole = whole or (isinstance(end, int) and isinstance(extent, int) and end >= extent)
    same = whole or same_extent(call.meta["val"].shape[dim], extent)
    return bool(same) and keeps_layout(call)


def _is_inactive_dropout(call: Node) -> bool:
    return bool(call.args[1] == 0 or not call.args[2])


def _is_identity_permutation(call: Node) -> bool:
    dims: Any = call.args[1]
    return list(dims) == list(range(len(dims)))


class RemoveNoopPass(CallPass):
    """Drop operators that return an operand as it is.

    Before    y = slice_copy(x, dim, 0, size); z = f(y), or y = copy(old, x); z = f(y)
    After     z = f(x)
    Requires  views turned into copies.
    Leaves    a graph output that would otherwise become an input or a second output.
    """

    takes = _ATEN
    rules = {
        _aten.to.dtype: drop_if(keeps_layout),
        _aten.dropout.default: drop_if(_is_inactive_dropout),
        _aten.slice_copy.Tensor: drop_if(_is_full_slice),
        _aten.expand_copy.default: drop_if(keeps_layout),
        _aten.view_copy.default: drop_if(keeps_layout),
        _aten.alias_copy.default: drop_if(keeps_layout),
        _aten.detach_copy.default: drop_if(keeps_layout),
        _aten.permute_copy.default: drop_if(_is_identity_permutation),
        _aten.clone.default: drop_if(keeps_layout),
        _aten.copy.default: drop_if(lambda copy: keeps_layout(copy, operand=1), operand=1),
    }


def _infer_extent(call: Node) -> bool:
    shape: list[Any] = list(call.args[1])  # type: ignore[arg-type]
    symbolic = [i for i, extent in enumerate(shape) if isinstance(extent, Node)]
    if len(symbolic) != 1 or 0 in shape or -1 in shape:
        return False
    shape[symbolic[0]] = -1
    call.args = (call.args[0], shape)
    return True


class InferViewExtent(CallPass):
    """Let the one extent of a view that only the call tells follow from the others.

    Before    s = sym_size(x, 1); y = view_copy(x, [1, s, 4, 8])
    After     y = view_copy(x, [1, -1, 4, 8])
    Requires  views turned into copies.
    Ensures   equal values; the number is not computed for the view's sake, and delegates need not
              be given it.
    Leaves    shapes with several such extents, and without elements.
    """

    takes = _ATEN
    rules = {_aten.view_copy.default: _infer_extent}


def _is_empty(node: Node) -> bool:
    return any(isinstance(s, int) and s == 0 for s in node.meta["val"].shape)


def _prune(cat: Node) -> bool:
    parts: Any = cat.args[0]
    kept = [part for part in parts if not _is_empty(part)]
    value = cat.meta["val"]
    if len(kept) == 1 and same_layout(kept[0].meta["val"], value) and is_droppable(cat, kept[0]):
        replace_node(cat, kept[0])
        return True
    if len(kept) == len(parts):
        return False
    if not kept:
        if value.dtype.is_complex:
            return False  # of which there is no `full`
        zero = False if value.dtype == torch.bool else 0
        args, kwargs = (list(value.shape), zero), {"dtype": value.dtype}
        replace_node(cat, insert_before(cat, _aten.full.default, args, kwargs))
        return True
    if not any(part.meta["val"].dtype == value.dtype for part in kept):
        return False
    cat.update_arg(0, kept)
    return True


class PruneEmptyTensorsPass(CallPass):
    """Drop operands without elements from `cat`.

    Before    y = cat([a, empty, b]); z = cat([a])
    After     y = cat([a, b]); z = a
    Ensures   equal values and dtypes; a cat left without operands becomes a `full` of zeros.
    Leaves    an operand whose dtype takes part in the promotion of the result; complex operands
              that are all without elements, as `full` has no such kernel.
    """

    takes = _ATEN
    rules = {_aten.cat.default: _prune}


class RemoveToCopyPass(CallPass):
    """Drop `_to_copy` that changes neither dtype, device, shape nor strides.

    Leaves    a graph output that would otherwise become an input or a second output.
    """

    takes = _ATEN
    rules = {_aten._to_copy.default: drop_if(keeps_layout)}


def _cast_operands(call: Node) -> bool:
    found = list(operands(call))
    dtype = promoted_dtype([operand.meta["val"] for operand, _ in found])
    divides = call.target is _aten.div.Tensor or (
        call.target is _aten.div.Tensor_mode and call.kwargs.get("rounding_mode") is None
    )
    if divides and not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.get_default_dtype()
    mixed = [(operand, r) for operand, r in found if operand.meta["val"].dtype != dtype]
    for operand, replace in mixed:
        replace(insert_before(call, _aten._to_copy.default, (operand,), {"dtype": dtype}))
    return bool(mixed)


class RemoveMixedTypeOperators(CallPass):
    """Make the casts of mixed arithmetic explicit.

    Before    y = aten.add.Tensor(a, b)                        a: int64, b: float32
    After     c = aten._to_copy(a, float32); y = aten.add.Tensor(c, b)
    Ensures   equal values; these operators have operands of one dtype, which for a true division is
              a floating point one.
    """

    takes = _ATEN
    rules = dict.fromkeys(
        (
            *(_aten.add.Tensor, _aten.sub.Tensor, _aten.mul.Tensor, _aten.div.Tensor),
            *(_aten.div.Tensor_mode, _aten.minimum.default, _aten.maximum.default),
        ),
        _cast_operands,
    )


# To edge operators, and between them.


def _swap(call: Node, target: Any, kwargs: dict[str, Any]) -> bool:
    call.target, call.kwargs = target, kwargs
    rename_after_target(call)
    return True


class OpReplacePass(CallPass):
    """Turn torch operators into edge operators, and name their nodes after them.

    Before    %add = torch.ops.aten.add.Tensor(...)
    After     %aten_add_tensor = exir_ops.edge.aten.add.Tensor(...)
    """

    takes = _ATEN
    gives = Dialect.EDGE

    def change(self, call: Node) -> bool:
        if is_unwrapped(call.target):
            return False
        return _swap(call, edge_op(call.target), dict(call.kwargs))  # type: ignore[arg-type]


_DIM_ORDER_OF = {
    _edge.aten._to_copy.default: _edge.dim_order_ops._to_dim_order_copy.default,
    _edge.aten.clone.default: _edge.dim_order_ops._clone_dim_order.default,
    _edge.aten.empty.memory_format: _edge.dim_order_ops._empty_dim_order.default,
}
_FORMAT_OF = {new: old for old, new in _DIM_ORDER_OF.items()}


def _take_dim_order(call: Node) -> bool:
    kwargs = dict(call.kwargs)
    kwargs["dim_order"] = _dim_order(call, kwargs.pop("memory_format", None))
    return _swap(call, _DIM_ORDER_OF[call.target], kwargs)


def _dim_order(call: Node, memory_format: Any) -> list[int]:
    value = call.meta["val"]
    source = call.args[0] if call.args else None
    if memory_format in (None, torch.preserve_format) and isinstance(source, Node):
        if is_channels_last(source.meta["val"]):
            memory_format = torch.channels_last
        elif not is_contiguous(source.meta["val"]):
            call.meta["val"] = value.contiguous()
    return get_dim_order(memory_format, value.dim())


class MemoryFormatOpsPass(CallPass):
    """Turn memory formats into dim orders.

    Before    y = aten.clone(x, memory_format=channels_last)
    After     y = dim_order_ops._clone_dim_order(x, dim_order=[0, 2, 3, 1])
    Ensures   equal values; an absent or preserving format becomes the dim order of the input.
    """

    takes = _EDGE
    rules = dict.fromkeys(_DIM_ORDER_OF, _take_dim_order)


def _take_format(call: Node) -> bool:
    kwargs = dict(call.kwargs)
    dim_order: Any = kwargs.pop("dim_order", None)
    order = list(range(call.meta["val"].dim())) if dim_order is None else list(dim_order)
    kwargs["memory_format"] = get_memory_format(order)
    return _swap(call, _FORMAT_OF[call.target], kwargs)


class DimOrderOpsRevertPass(CallPass):
    """Turn dim orders back into memory formats.

    Before    y = dim_order_ops._clone_dim_order(x, dim_order=[0, 2, 3, 1])
    After     y = aten.clone(x, memory_format=channels_last)
    Ensures   equal values; without a dim order, the contiguous format.
    """

    takes = _EDGE
    rules = dict.fromkeys(_FORMAT_OF, _take_format)


# In any dialect.


class FoldRedundantDequantizeQuantizePass(CallPass):
    """Drop a dequantize followed by a quantize with equal parameters.

    Before    y = dequantize_per_tensor(q, *p); r = quantize_per_tensor(y, *p)
    After     r = q
    Ensures   equal values; also per channel. The dequantize stays for other users.
    """

    def change(self, call: Node) -> bool:
        source: Any = call.args[0] if call.args else None
        if not isinstance(source, Node) or not _undoes(call, source):
            return False
        original: Any = source.args[0]
        if not is_droppable(call, original):
            return False
        replace_node(call, original)
        if not source.users:
            source.graph.erase_node(source)
        return True


def _undoes(quantize: Node, dequantize: Node) -> bool:
    (verb, how), (inner_verb, inner_how) = _kind(quantize), _kind(dequantize)
    return (
        verb == "quantize"
        and inner_verb == "dequantize"
        and how == inner_how
        and quantize.args[1:] == dequantize.args[1:]
        and not dequantize.kwargs.keys() - {"out_dtype"}
        and isinstance(dequantize.args[0], Node)
        and _dtype(dequantize.args[0]) in (_dtype(quantize), None)
    )


def _kind(node: Node) -> tuple[str, str]:
    """("quantize" or "dequantize" or "", the rest of the operator's name)."""
    schema = find_schema(node.target)
    if schema is None or not schema.name.startswith("quantized_decomposed::"):
        return "", ""
    verb, _, rest = schema.name.rpartition("::")[2].partition("_")
    return verb, f"{rest}.{schema.overload_name}"


def _dtype(node: Node) -> torch.dtype | None:
    """None in a graph without values: then the equal arguments of both say it."""
    value = node.meta.get("val")
    return value.dtype if isinstance(value, Tensor) else None


class RemoveGraphAssertsPass(CallPass):
    """Drop run-time assertions and range hints: they have served their purpose ahead of time.

    Before    c = u <= 8; _assert_scalar(c, "...")
    After     nothing, unless c has another user
    """

    rules = dict.fromkeys(
        (
            *(_aten._assert_async.default, _aten._assert_async.msg, _aten._assert_scalar.default),
            _aten._assert_tensor_metadata.default,
            *(_aten.sym_constrain_range.default, _aten.sym_constrain_range_for_size.default),
        ),
        erase,
    )

    def edit_graph(self, graph_module: GraphModule) -> bool:
        return any([super().edit_graph(graph_module), remove_dead_code(graph_module)])


# The rows between decomposition and edge operators, in order.
PRE_OP_REPLACE: tuple[type[GraphPass], ...] = (
    RemoveNonCoreAtenOpGraphAssertsPass,
    ReplaceSymSizeOpPass,
    NormalizeTransposePass,
    ReplaceBrokenOpsWithFunctionalOpsPass,
    ScalarToTensorPass,
    SymToTensorPass,
    RemoveNoopPass,
    InferViewExtent,
    PruneEmptyTensorsPass,
    RemoveToCopyPass,
    FoldRedundantDequantizeQuantizePass,
    RemoveMixedTypeOperators,
)
