"""Passes over calls that give a tensor another shape or another order of dims.

Sizes of symbols are compared without guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.fx import Node

from executorch.exir.dialects._ops import ops
from executorch.exir.graph.graph_edit import (
    compute_value,
    insert_before,
    is_droppable,
    replace_node,
    same_extent,
    same_shape,
)
from executorch.exir.graph.pass_driver import CallPass

_aten = ops.edge.aten
_quantized = ops.edge.quantized_decomposed
_view = _aten.view_copy.default
_permute = _aten.permute_copy.default
_transpose = _aten.transpose_copy.int


def _value(node: Any) -> Tensor:
    value: Tensor = node.meta["val"]
    return value


def _replace(call: Node, target: Any, *args: Any) -> bool:
    replace_node(call, insert_before(call, target, args, value=_value(call)))
    return True


def _drop_unread(node: Node) -> None:
    if not node.users:
        node.graph.erase_node(node)


def _collapse(call: Node) -> bool:
    inner: Any = call.args[0]
    if inner.target is not _view:
        return False
    source = inner.args[0]
    if same_shape(_value(source).shape, _value(call).shape) and is_droppable(call, source):
        replace_node(call, source)
    else:
        call.update_arg(0, source)
    _drop_unread(inner)
    return True


class CollapseViewCopyPass(CallPass):
    """Give a view of a view its last shape at once.

    Before    y = view_copy(view_copy(x, [6]), [3, 2])
    After     y = view_copy(x, [3, 2]), or x where x has that shape
    Requires  edge operators.
    """

    rules = {_view: _collapse}


FuseCascadedViewOps = CollapseViewCopyPass


def _ones_left_out(longer: Sequence[Any], shorter: Sequence[Any]) -> list[int] | None:
    """The dims of extent 1 without which the longer shape is the shorter one."""
    rest, left_out = list(shorter), []
    for dim, extent in enumerate(longer):
        if rest and same_extent(rest[0], extent):
            rest.pop(0)
        elif same_extent(extent, 1):
            left_out.append(dim)
        else:
            return None
    return None if rest else left_out


def _squeeze_or_unsqueeze(call: Node) -> bool:
    before, after = _value(call.args[0]).shape, _value(call).shape
    removed = _ones_left_out(before, after)
    if removed:
        return _replace(call, _aten.squeeze_copy.dims, call.args[0], removed)
    added = _ones_left_out(after, before)
    if added is None or len(added) != 1:
        return False
    return _replace(call, _aten.unsqueeze_copy.default, call.args[0], added[0])


class ViewCopyToSqueezeUnsqueezePass(CallPass):
    """Name views that only remove dims of extent 1, or add one.

    Before    y = view_copy(x, [2, 3]), x [1, 2, 3]; z = view_copy(y, [2, 1, 3])
    After     y = squeeze_copy(x, [0]); z = unsqueeze_copy(y, 1)
    Requires  edge operators.
    """

    rules = {_view: _squeeze_or_unsqueeze}


def _view_instead(call: Node) -> bool:
    shape = _value(call).shape
    is_static = all(isinstance(extent, int) for extent in shape)
    return is_static and _replace(call, _view, call.args[0], list(shape))


class ReplaceSqueezeAndUnsqueezeWithViewPass(CallPass):
    """Turn `squeeze_copy` and `unsqueeze_copy` into `view_copy`, so that only this is left to know.

    Requires  edge operators.
    Leaves    results of dynamic shape.
    """

    rules = dict.fromkeys(
        (
            *(_aten.squeeze_copy.default, _aten.squeeze_copy.dim, _aten.squeeze_copy.dims),
            _aten.unsqueeze_copy.default,
        ),
        _view_instead,
    )


def _order(call: Node) -> list[int]:
    """The dims of a permutation's or transposition's operand in the order of its result."""
    rank = _value(call).dim()
    if call.target is _permute:
        return [dim % rank for dim in call.args[1]]  # type: ignore
    order = list(range(rank))
    if rank:
        first, second = (dim % rank for dim in call.args[1:3])  # type: ignore[operator]
        order[first], order[second] = second, first
    return order


def _keeps_elements_in_place(order: Sequence[int], shape: Sequence[Any]) -> bool:
    """Whether a permutation moves dims of extent 1 alone."""
    moved = [dim for dim in order if not same_extent(shape[dim], 1)]
    return moved == sorted(moved)


def _view_of_unmoved(call: Node) -> bool:
    source: Any = call.args[0]
    order = _order(call)
    if order == sorted(order) and is_droppable(call, source):
        replace_node(call, source)
        return True
    return _keeps_elements_in_place(order, _value(source).shape) and _view_instead(call)


class ReplaceNopTransposeOrPermuteWithViewPass(CallPass):
    """Turn permutations that leave all elements where they are into views.

    Before    y = permute_copy(x, [0, 2, 1, 3]), x [2, 1, 3, 4]
    After     y = view_copy(x, [2, 3, 1, 4]), or x where no dim moves
    Requires  edge operators.
    Leaves    results of dynamic shape.
    """

    rules = dict.fromkeys((_permute, _transpose), _view_of_unmoved)


def _compose(call: Node) -> bool:
    inner: Any = call.args[0]
    if inner.target not in (_permute, _transpose):
        return False
    source, first = inner.args[0], _order(inner)
    order = [first[dim] for dim in _order(call)]
    if order == sorted(order) and is_droppable(call, source):
        replace_node(call, source)
    else:
        _replace(call, _permute, source, order)
    _drop_unread(inner)
    return True


class FuseCascadedTransposeOrPermuteOps(CallPass):
    """Make one permutation of two.

    Before    y = permute_copy(transpose_copy(x, 0, 1), [0, 2, 1])
    After     y = permute_copy(x, [1, 2, 0]), or x where no dim has moved
    Requires  edge operators.
    """

    rules = dict.fromkeys((_permute, _transpose), _compose)


class FuseTransposeOrPermuteOpPairsPass(CallPass):
    """Drop two permutations, of which the second undoes the first, around quantizations.

    Before    y = permute_copy(x, [0, 2, 1]); q = quantize_per_tensor(y, *p);
              z = transpose_copy(q, 1, 2)
    After     q = quantize_per_tensor(x, *p); z = view_copy(q, shape)
    Requires  edge operators.
    Ensures   equal values; dims of extent 1 may lie elsewhere between the two.
    Leaves    a permutation with a reader that no inverse of it follows; results of dynamic shape.
    """

    #: Operators that compute each element by itself, with numbers for all of them.
    bypass_ops = {
        _quantized.quantize_per_tensor.default,
        _quantized.dequantize_per_tensor.default,
    }

    def change(self, call: Node) -> bool:
        if call.target not in (_permute, _transpose) or not call.users:
            return False
        source: Any = call.args[0]
        passed: list[Node] = []
        inverses = self._inverses(call, _order(call), passed)
        if not inverses:
            return False
        call.replace_all_uses_with(source)
        call.graph.erase_node(call)
        for node in passed:
            node.meta["val"] = compute_value(node.target, node.args, node.kwargs)
        for inverse in inverses:
            unmoved: Any = inverse.args[0]
            is_same = same_shape(_value(unmoved).shape, _value(inverse).shape)
            if is_same and is_droppable(inverse, unmoved):
                replace_node(inverse, unmoved)
            else:
                _view_instead(inverse)
        return True

    def _inverses(self, call: Node, order: list[int], passed: list[Node]) -> list[Node]:
        """The calls behind `call` that undo it; none if something else reads what it moved."""
        found: list[Node] = []
        for reader in call.users:
            if reader.target in self.bypass_ops:
                passed.append(reader)
                behind = self._inverses(reader, order, passed)
                if not behind:
                    return []
                found += behind
            elif self._undoes(reader, order):
                found.append(reader)
            else:
                return []
        return found

    def _undoes(self, reader: Node, order: list[int]) -> bool:
        if reader.target not in (_permute, _transpose):
            return False
        shape = _value(reader).shape
        source_shape: list[Any] = [None] * len(order)
        for place, dim in enumerate(order):
            source_shape[dim] = _value(reader.args[0]).shape[place]
        together = [order[dim] for dim in _order(reader)]
        is_static = all(isinstance(extent, int) for extent in shape)
        return is_static and _keeps_elements_in_place(together, source_shape)


class FuseViewCopyTransform(CallPass):
    """Leave one view of those that stand before and between operators on each element by itself.

    Before    y = relu(view_copy(x, [6])); z = view_copy(y, [3, 2])
    After     z = relu(view_copy(x, [3, 2]))
    Requires  edge operators.
    Leaves    what something else reads, too.
    """

    VIEW_OP = _view
    UNARY_ELEMENTWISE_OPS = [
        *(_aten.alias_copy.default, _aten.clone.default, _aten._to_copy.default),
        *(_quantized.quantize_per_tensor.default, _quantized.dequantize_per_tensor.default),
        *(_aten.abs.default, _aten.neg.default, _aten.sign.default, _aten.reciprocal.default),
        *(_aten.ceil.default, _aten.floor.default, _aten.round.default, _aten.clamp.default),
        *(_aten.relu.default, _aten.sigmoid.default, _aten.silu.default, _aten.gelu.default),
        *(_aten.tanh.default, _aten.exp.default, _aten.log.default),
        *(_aten.sqrt.default, _aten.rsqrt.default),
    ]

    def change(self, call: Node) -> bool:
        if call.target is not self.VIEW_OP or not call.users:
            return False
        chain = self._single_readers(call)
        later = [place for place, node in enumerate(chain) if node.target is self.VIEW_OP]
        if not later:
            return False
        last = chain[later[-1]]
        shape: Any = last.args[1]
        if any(isinstance(extent, Node) for extent in shape):
            return False  # it may be computed behind `call`
        call.update_arg(1, shape)
        for node in (call, *chain[: later[-1] + 1]):
            if node is not call and node.target is self.VIEW_OP:
                replace_node(node, node.args[0])  # type: ignore[arg-type]
            else:
                node.meta["val"] = compute_value(node.target, node.args, node.kwargs)
        return True

    def _single_readers(self, call: Node) -> list[Node]:
        chain: list[Node] = []
        node = call
        while len(node.users) == 1:
            (node,) = node.users
            is_unary = node.target in self.UNARY_ELEMENTWISE_OPS
            if node.target is not self.VIEW_OP and (not is_unary or "memory_format" in node.kwargs):
                break
            chain.append(node)
        return chain
