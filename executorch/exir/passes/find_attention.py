"""Attention among the calls of an edge graph, however it was torn apart.

`scaled_dot_product_attention` reaches a backend as products, multiplications by numbers, a mask, a
softmax and what gives rows without a visible key zeros; a model may write the same itself. The
groups found here are to be left to, or given to, one engine as a whole: an engine that gets a part
has to store all scores.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.program_view import ProgramView

_aten, _dims = exir_ops.edge.aten, exir_ops.edge.dim_order_ops

# A tensor in, the same elements in the same order out.
_VIEWS = {
    _aten.view_copy.default, _aten.unsqueeze_copy.default, _aten.squeeze_copy.dims,
    _aten.squeeze_copy.dim, _aten.clone.default, _aten.alias_copy.default,
    _dims._clone_dim_order.default,
}  # fmt: skip
_CASTS = {_aten._to_copy.default, _dims._to_dim_order_copy.default}
_EXPANDS = {_aten.expand_copy.default}
# What brings operands to their places, and the result to its own.
_MOVES = {
    *_VIEWS, *_EXPANDS, _aten.permute_copy.default, _aten.transpose_copy.int,
    _aten.slice_copy.Tensor, _aten.select_copy.int, _aten.split_with_sizes_copy.default,
    operator.getitem,
}  # fmt: skip
# Where the number stands that a tensor is filled with.
_FILLED = {
    _aten.full.default: 1, _aten.full_like.default: 1, _aten.scalar_tensor.default: 0,
    torch.ops.aten.scalar_tensor.default: 0,
}  # fmt: skip
_PRODUCTS = {_aten.mul.Scalar, _aten.div.Scalar, _aten.mul.Tensor, _aten.div.Tensor}
_HEAVY = {
    _aten.bmm.default, _aten.mm.default, _aten.addmm.default, _aten.linear.default,
    _aten.convolution.default, _aten._softmax.default, _aten.native_layer_norm.default,
    _aten.embedding.default,
}  # fmt: skip
_STEPS = {
    *_VIEWS, *_CASTS, *_EXPANDS, *_PRODUCTS, _aten.add.Tensor, _aten.where.self,
    _aten.masked_fill.Scalar,
}  # fmt: skip
_MOST_STEPS = 32


@dataclass
class Attention:
    """softmax(scale * query key + mask) value, as calls of a graph."""

    first: Node  # the product of queries and keys, bmm
    softmax: Node
    second: Node  # the product of weights and values, bmm
    scale: float = 1.0  # between the first product and the softmax
    masks: list[Node] = field(default_factory=list)  # added, or where scores are visible or hidden
    core: set[Node] = field(default_factory=set)  # from the first product to the second

    @property
    def operands(self) -> tuple[Node, Node, Node]:
        """Queries [b, t, d], keys [b, d, s] and values [b, s, e]."""
        (query, key), value = self.first.args[:2], self.second.args[1]
        return query, key, value  # type: ignore[return-value]


class Attentions:
    """The attentions of a program, in the order of its graph. Their cores are disjoint, and nothing
    else reads what is computed in them."""

    def __init__(self, program: ExportedProgram) -> None:
        graph = program.graph_module.graph
        self._numbers = _Numbers(program)
        softmaxes = graph.find_nodes(op="call_function", target=_aten._softmax.default)
        matches = (_Match(each, self._numbers).run() for each in softmaxes)
        self.found = [match for match in matches if match is not None]

    def all_of(self, attentions: Iterable[Attention]) -> set[Node]:
        """The cores, with what is read by them alone: views of operands and multiplications of them
        by numbers, what masks are computed from; and views of the results."""
        members: set[Node] = set()
        operands: list[Node] = []
        masks: list[Node] = []
        results: list[Node] = []
        for each in attentions:
            members |= each.core
            operands += each.operands
            read = {source for node in each.core for source in node.all_input_nodes}
            masks += read - each.core - set(each.operands)
            results.append(each.second)
        for pending, wanted in ((operands, self._is_moved), (masks, _is_light)):
            while pending:
                node = pending.pop()
                if node.op == "call_function" and wanted(node) and set(node.users) <= members:
                    members.add(node)
                    pending += node.all_input_nodes
        for node in results:
            while len(node.users) == 1 and (node := next(iter(node.users))).target in _MOVES:
                members.add(node)
        return members

    def _is_moved(self, node: Node) -> bool:
        return node.target in _MOVES or self._numbers.scaled(node) is not None


def _is_light(node: Node) -> bool:
    return node.target not in _HEAVY


class _Match:
    """Back from a softmax to the first product, and on to the second."""

    def __init__(self, softmax: Node, numbers: _Numbers) -> None:
        self.softmax = softmax
        self.numbers = numbers
        self.core = {softmax}
        self.masks: list[Node] = []
        self.scale = 1.0

    def run(self) -> Attention | None:
        scores, dim, changes_type = self.softmax.args
        value = self.softmax.meta["val"]
        last = dim in (-1, value.dim() - 1)
        if not isinstance(scores, Node) or not last or changes_type:
            return None
        weights = self._through_tail(scores)
        if weights is None:
            return None
        first = self._first_product(scores)
        second = self._second_product(weights)
        if first is None or second is None:
            return None
        return Attention(first, self.softmax, second, self.scale, self.masks, self.core)

    def _through_tail(self, scores: Node) -> Node | None:
        """where(not any(not (scores == -inf)), 0, weights), if it is there: rows that see no key
        give zeros. Else the weights; None if others read them or the scores."""
        where = [n for n in self.softmax.users if n.target is _aten.where.self]
        if len(where) != 1:
            return self.softmax if set(scores.users) == {self.softmax} else None
        condition, zeros, weights = where[0].args
        chain: list[Any] = [condition]
        for target in (_aten.logical_not.default, _aten.any.dim, _aten.logical_not.default):
            if not _is_call(chain[-1], target) or len(chain[-1].users) != 1:
                return None
            chain.append(chain[-1].args[0])
        hidden = chain[-1]
        if not _is_call(hidden, _aten.eq.Scalar) or hidden.args != (scores, -math.inf):
            return None
        anyone = chain[1]
        last = anyone.args[1] in (-1, scores.meta["val"].dim() - 1)
        if weights is not self.softmax or not last or anyone.args[2:] != (True,):
            return None
        if not isinstance(zeros, Node) or self.numbers.of(zeros) != 0 or len(hidden.users) != 1:
            return None
        own = {where[0], zeros} if zeros.target is _aten.full_like.default else {where[0]}
        own &= {where[0], *self.softmax.users}
        if set(self.softmax.users) != own or set(scores.users) != {self.softmax, hidden}:
            return None
        self.core |= {*chain, *own}
        return where[0]

    def _first_product(self, scores: Node) -> Node | None:
        node: Any = scores
        for _ in range(_MOST_STEPS):
            if not isinstance(node, Node) or node.op != "call_function":
                return None
            if node is not scores and len(node.users) != 1:
                return None
            self.core.add(node)
            if node.target is _aten.bmm.default:
                return node
            node = self._before(node)
        return None

    def _before(self, node: Node) -> Node | None:
        """The scores that a step takes."""
        if node.target in _VIEWS or node.target in _EXPANDS:
            return node.args[0]  # type: ignore[return-value]
        if node.target in _CASTS:
            source: Any = node.args[0]
            return source if source.meta["val"].is_floating_point() else None
        if (scaled := self.numbers.scaled(node)) is not None:
            self.scale *= scaled[1]
            return scaled[0]
        return self._unmasked(node)

    def _unmasked(self, node: Node) -> Node | None:
        given: Any = node.args
        if node.target is _aten.add.Tensor and node.kwargs.get("alpha", 1) == 1:
            pair = given if _leads_to_product(given[0]) else given[::-1]
        elif node.target is _aten.where.self:
            condition, yes, no = given
            if self.numbers.of(no) == -math.inf:
                pair = yes, condition
            elif self.numbers.of(yes) == -math.inf:
                pair = no, condition
            else:
                return None
        elif node.target is _aten.masked_fill.Scalar and given[2] == -math.inf:
            pair = given[:2]
        else:
            return None
        scores, mask = pair
        if not _leads_to_product(scores) or not isinstance(mask, Node):
            return None
        self.masks.append(mask)
        return scores  # type: ignore[no-any-return]

    def _second_product(self, weights: Node) -> Node | None:
        node = weights
        for _ in range(_MOST_STEPS):
            if len(node.users) != 1:
                return None
            user = next(iter(node.users))
            if user.target is _aten.bmm.default:
                if user.args[0] is not node or user.args[1] is node:
                    return None
                self.core.add(user)
                return user
            if user.target not in _VIEWS | _EXPANDS | _CASTS:
                return None
            self.core.add(user)
            node = user
        return None


def _is_call(node: Any, target: Any) -> bool:
    return isinstance(node, Node) and node.target is target


def _leads_to_product(start: Any) -> bool:
    """Whether what is computed from scores at each place by itself began as a product."""
    pending: list[Any] = [start]
    seen: set[Node] = set()
    while pending and len(seen) < _MOST_STEPS:
        node = pending.pop()
        if not isinstance(node, Node) or node.op != "call_function" or node in seen:
            continue
        seen.add(node)
        if node.target is _aten.bmm.default:
            return True
        if node.target in _STEPS:
            pending += node.all_input_nodes
    return False


class _Numbers:
    """What stands for a number in a program."""

    def __init__(self, program: ExportedProgram) -> None:
        self._constants = {
            node.name: float(tensor.detach())
            for node, tensor in ProgramView(program).stored.items()
            if tensor.numel() == 1 and not tensor.is_complex()
        }

    def of(self, value: Any) -> float | None:
        """What a number, or a tensor filled with one, holds."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, Node):
            return None
        if value.op == "placeholder":
            return self._constants.get(value.name)
        if value.target not in _FILLED:
            return None
        filled = value.args[_FILLED[value.target]]
        return float(filled) if isinstance(filled, (int, float)) else None

    def scaled(self, node: Node) -> tuple[Node, float] | None:
        """The tensor that a call multiplies by a number, and the number."""
        if node.target not in _PRODUCTS:
            return None
        x, factor = node.args[:2]
        divides = node.target in (_aten.div.Scalar, _aten.div.Tensor)
        if not divides and self.of(x) is not None:
            x, factor = factor, x
        number = self.of(factor)
        if number is None or not isinstance(x, Node) or (divides and number == 0):
            return None
        if x.meta["val"].dim() != node.meta["val"].dim():  # the number gives the shape
            return None
        return x, 1 / number if divides else number
