"""Values that depend on the number of tokens alone: masks, positions, rotary tables, ALiBi.

Such a value is used in the incremental program as a slice of what it is for the longest text. That
is right if it is prefix-stable: for every length T, its entries are those that it has for the
longest one. Of two proofs one is needed:

  by structure   every operator on the way computes an entry from the entry's own indices, not from
                 T: positions, comparisons, elementwise functions, slices of constants
  by trial       it is computed for every T from 1 to the maximum and compared
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from executorch.exir.error import first_line
from executorch.exir.graph.graph_edit import exact_sizes
from executorch.exir.graph.source_line import source_line
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.values import arguments
from executorch.exir.torch_internals import OpOverload

aten = torch.ops.aten
_SYMBOLIC = (SymInt, SymFloat, SymBool)

# Elements that the proof by trial may compute: some seconds.
_TRIAL_ELEMENTS = 2_000_000_000
_CALL_ELEMENTS = 20_000  # what a call costs, however small its operands are
# Elements of a value that is computed for the longest text: a mask over 16384 tokens.
MOST_ELEMENTS = 2**28

# Each entry is made from entries at the same or lower indices, whatever T is.
LOCAL = {
    aten.unsqueeze.default, aten.expand.default, aten.clone.default, aten.contiguous.default,
    aten.alias.default, aten.detach.default, aten.detach_.default, aten.to.dtype,
    aten.to.dtype_layout, aten.to.device, aten._to_copy.default, aten.lift_fresh_copy.default,
    aten.embedding.default, aten.cumsum.default, aten.tril.default, aten.triu.default,
    aten.ones.default, aten.zeros.default, aten.full.default, aten.ones_like.default,
    aten.zeros_like.default, aten.full_like.default, aten.new_ones.default,
    aten.new_zeros.default, aten.new_full.default, aten.permute.default, aten.transpose.int,
    aten.t.default, aten.squeeze.dim, aten.cat.default, aten.stack.default, aten.matmul.default,
    aten.bmm.default, aten.outer.default, aten.select.int, aten.scalar_tensor.default,
    aten.index.Tensor, aten._assert_tensor_metadata.default, aten.split.Tensor,
    aten.chunk.default, aten.repeat_interleave.self_int, aten.dropout.default, operator.getitem,
    aten.where.Scalar, aten.where.ScalarOther, aten.where.ScalarSelf, aten.masked_fill.Tensor,
    aten.floor_divide.default, aten.squeeze.default, aten.squeeze.dims, aten.repeat.default,
    aten.mT.default, aten.mm.default, aten.eye.default,
}  # fmt: skip
# The argument that says how many entries there are, not what they are.
_SIZES: dict[Any, int] = {
    aten.ones.default: 0, aten.zeros.default: 0, aten.full.default: 0, aten.new_ones.default: 1,
    aten.new_zeros.default: 1, aten.new_full.default: 1, aten.expand.default: 1,
    aten.slice.Tensor: 3, aten.arange.default: 0, aten.arange.start: 1, aten.arange.start_step: 1,
    aten.eye.default: 0,
}  # fmt: skip
_ARANGES = {aten.arange.default: 0, aten.arange.start: 1, aten.arange.start_step: 1}
_RESHAPES = {
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.flatten.using_ints,
}  # fmt: skip


def token_dims(value: Any, symbol: sympy.Symbol) -> list[int]:
    """The dims of a fake tensor whose extent is that of the token dimension."""
    return [d for d, n in enumerate(value.shape) if isinstance(n, SymInt) and n.node.expr == symbol]


def depends_on(value: Any, symbol: sympy.Symbol) -> bool:
    """Whether the shape of a fake tensor, or a number, is one of the token dimension's."""
    sizes = value.shape if isinstance(value, Tensor) else [value]
    return any(isinstance(n, _SYMBOLIC) and symbol in n.node.expr.free_symbols for n in sizes)


def symbolic_numbers(args: Any) -> list[Node]:
    """The symbolic numbers among arguments."""
    found: list[Node] = []

    def look(node: Node) -> Node:
        if isinstance(node.meta.get("val"), _SYMBOLIC):
            found.append(node)
        return node

    map_arg(args, look)
    return found


class LengthValues:
    """Computes nodes for given lengths, and proves that they are prefix-stable.

    constant(node)  the tensor that a placeholder stands for
    """

    def __init__(
        self, symbol: sympy.Symbol, maximum: int, constant: Callable[[Node], Tensor]
    ) -> None:
        self.symbol = symbol
        self.maximum = maximum
        self.constant = constant
        self._longest: dict[Node, Any] = {}
        self._proven: set[Node] = set()
        self._varying: set[Node] = set()
        self.shifted: set[Node] = set()  # what is_shifted has shown

    def longest(self, node: Node) -> Tensor:
        """The value for the maximal length."""
        return self._compute(node, self.maximum, self._longest)

    def at(self, node: Node, length: int) -> Any:
        return self._compute(node, length, {})

    def changes(self, number: Node) -> bool:
        """Whether a symbolic number may differ from one length to another."""
        value = number.meta["val"]
        expression = value.node.expr
        if not expression.free_symbols:
            return False
        if expression.free_symbols != {self.symbol}:
            return True
        if not value.node.shape_env.bound_sympy(expression).is_singleton():
            return True
        # The range that is known of the dim may begin above 1.
        return self.differs(value)

    def differs(self, extent: Any) -> bool:
        """Whether a size is another for one token than for the longest text."""
        if not isinstance(extent, SymInt):
            return False
        return bool(self.number(extent, 1) != self.number(extent, self.maximum))

    def require_same_numbers(self, node: Node) -> None:
        """Raise NotCausalError where a number that differs between lengths would change what
        earlier tokens gave."""
        for number in symbolic_numbers((arguments(node), node.kwargs)):
            if self.changes(number):
                expression = number.meta["val"].node.expr
                is_length = expression.free_symbols == {self.symbol}
                what = "changes with the number of tokens" if is_length else "depends on data"
                raise NotCausalError(node, f"its operand {number.name} = {expression} {what}")

    def prove(self, nodes: list[Node]) -> None:
        """Raise NotCausalError unless all are prefix-stable."""
        nodes = [n for n in nodes if n not in self._proven]
        if not nodes:
            return
        for node in nodes:
            self.longest(node)
        by_trial = []
        for node in nodes:
            obstacle = self._obstacle(node)
            if obstacle is not None and self._trial_elements([node]) > _TRIAL_ELEMENTS:
                at, reason = obstacle
                raise NotCausalError(
                    at,
                    f"{self.maximum} lengths are too many to try all, and {reason}, so that it is "
                    f"not shown that {node.name} is the same for every number of tokens",
                )
            if obstacle is not None:
                by_trial.append(node)
        self._prove_by_trial(by_trial)
        self._proven.update(nodes)

    def is_shifted(self, node: Node, dim: int, most: float) -> bool:
        """Whether for every length it is, within rounding, the beginning of what it is for the
        longest text plus one number for all entries along `dim`; and none is larger than `most`.

        Then it has to be computed for the length of each call.
        """
        if node in self.shifted:
            return True
        longest = self.longest(node)
        is_known = longest.is_floating_point() and bool((longest.abs() <= most).all())
        if not is_known or self._trial_elements([node]) > _TRIAL_ELEMENTS:
            return False
        step = 4 * torch.finfo(longest.dtype).eps  # of a product, and of a difference
        for length in range(1, self.maximum):
            found = self.at(node, length)
            expected = longest.narrow(dim, 0, length)
            if found.shape != expected.shape:
                return False
            largest = torch.maximum(found.abs().max(), expected.abs().max())
            shift = found - expected
            spread = shift.amax(dim) - shift.amin(dim)
            if not bool((spread <= step * largest).all() and largest <= most):
                return False
        self.shifted.add(node)
        return True

    def _prove_by_trial(self, nodes: list[Node]) -> None:
        for length in range(1, self.maximum if nodes else 1):
            known: dict[Node, Any] = {}
            for node in nodes:
                found = self._compute(node, length, known)
                expected = self.longest(node)
                for dim in token_dims(node.meta["val"], self.symbol):
                    expected = expected.narrow(dim, 0, length)
                if not _equal(found, expected):
                    raise NotCausalError(
                        node,
                        f"its value changes with the number of tokens: for {length} it is not the "
                        f"beginning of its value for {self.maximum}",
                    )

    def _trial_elements(self, nodes: list[Node]) -> int:
        needed: set[Node] = set()
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node not in needed and node.op == "call_function":
                needed.add(node)
                pending += node.all_input_nodes
        per_call = 0
        for node in needed:
            value = self._longest.get(node)
            count = value.numel() if isinstance(value, Tensor) else 0
            dims = len(token_dims(node.meta["val"], self.symbol)) if count else 0
            per_call += _CALL_ELEMENTS + count // (dims + 1)
        return per_call * self.maximum

    def _obstacle(self, node: Node) -> tuple[Node, str] | None:
        """What keeps the proof by structure from succeeding: a node, and why."""
        pending, seen = [node], {node}
        while pending:
            at = pending.pop()
            reason = self._not_local(at) if self._varies(at) else None
            if reason is not None:
                return at, reason
            for source in _tensor_inputs(at):
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return None

    def _varies(self, node: Node) -> bool:
        """Whether a node is computed from any number of tokens."""
        if not self._varying:
            for at in node.graph.nodes:
                is_number = isinstance(at.meta.get("val"), _SYMBOLIC)
                if is_number or any(n in self._varying for n in at.all_input_nodes):
                    self._varying.add(at)
        return node in self._varying

    def _not_local(self, node: Node) -> str | None:
        """Why an entry of the node's value may depend on T; None if it does not."""
        if node.op != "call_function":
            return None
        target = node.target
        if target in _ARANGES:
            first = arguments(node)[0] if len(arguments(node)) > 1 else 0
            if isinstance(first, Node):
                return "it begins at a number that depends on T"
        if target is aten.slice.Tensor:
            start = arguments(node)[2] if len(arguments(node)) > 2 else 0
            if start is not None and not (isinstance(start, int) and start >= 0):
                return "it is cut at a place that depends on T"
        if target in _RESHAPES:
            shapes = [_without_ones(n.meta["val"]) for n in (arguments(node)[0], node)]
            if shapes[0] == shapes[1]:
                return None
            sizes = [] if target is aten.flatten.using_ints else arguments(node)[1]
            plain = [n for n in sizes if isinstance(n, int)]
            before, after = (_places(n.meta["val"]) for n in (arguments(node)[0], node))
            keeps = before is not None and before == after and len(plain) >= len(sizes) - 1
            return None if keeps else "it is reshaped"
        size = _SIZES.get(target)
        others = [a for i, a in enumerate(arguments(node)) if i != size]
        if any(self.changes(n) for n in symbolic_numbers((others, node.kwargs))):
            return "the number of tokens is an operand"
        if target in _ARANGES or target is aten.slice.Tensor:
            return None
        is_pointwise = isinstance(target, OpOverload) and (torch.Tag.pointwise in target.tags)
        if not is_pointwise and target not in LOCAL:
            return f"{target} is not known to compute entries from lower entries"
        return self._operands_not_local(node)

    def _operands_not_local(self, node: Node) -> str | None:
        target, args = node.target, arguments(node)
        if target in (aten.split.Tensor, aten.chunk.default):
            dim = args[2] if len(args) > 2 else 0
            extent = args[0].meta["val"].shape[dim]
            return "it is cut at places that depend on T" if isinstance(extent, SymInt) else None
        if target is aten.repeat.default:
            pairs = zip(reversed(args[0].meta["val"].shape), reversed(args[1]), strict=False)
            is_repeated = any(isinstance(n, SymInt) and times != 1 for n, times in pairs)
            return "positions are repeated" if is_repeated else None
        if target in (aten.matmul.default, aten.bmm.default, aten.mm.default):
            inner = args[0].meta["val"].shape[-1]
            return "it sums over the tokens" if isinstance(inner, SymInt) else None
        if target is aten.select.int:
            dim = args[1] if len(args) > 1 else 0
            extent = args[0].meta["val"].shape[dim]
            return "one position is picked" if isinstance(extent, SymInt) else None
        if target is aten.index.Tensor and self._varies(args[0]):
            picked = [i for i in args[1] if isinstance(i, Node)]
            if any(bool((self.longest(i) < 0).any()) for i in picked):
                return "positions are picked from the end"
        if target is aten.cat.default:
            dim = args[1] if len(args) > 1 else 0
            first = [n.meta["val"].shape[dim] for n in args[0][:-1]]
            return "it joins pieces" if any(isinstance(n, SymInt) for n in first) else None
        return None

    def _compute(self, node: Node, length: int, known: dict[Node, Any]) -> Any:
        """The node's value, and in `known` those of all it needs."""
        pending = [node]
        while pending:
            at = pending[-1]
            if at in known:
                pending.pop()
                continue
            missing = [s for s in _tensor_inputs(at) if s not in known]
            if missing:
                pending += missing
                continue
            pending.pop()
            known[at] = self._value(at, length, known)
        return known[node]

    def _value(self, node: Node, length: int, known: dict[Node, Any]) -> Any:
        fake = node.meta.get("val")
        if isinstance(fake, _SYMBOLIC):
            return self.number(fake, length)
        if node.op == "placeholder":
            return self.constant(node)
        self._require_affordable(node, fake, length)
        args, kwargs = map_arg(
            (arguments(node), node.kwargs),
            lambda n: known[n] if n in known else self.number(n.meta["val"], length),
        )
        try:
            with torch.no_grad():
                return node.target(*args, **kwargs)  # type: ignore[operator]
        except (IndexError, RuntimeError) as error:  # as of a table that ends before the text
            raise ValueError(
                f"{node.name}: it cannot be computed for a text of {length} tokens, which the "
                f"program takes: {first_line(error)}\n  at {source_line(node)}"
            ) from error

    def _require_affordable(self, node: Node, fake: Any, length: int) -> None:
        for value in fake if isinstance(fake, (list, tuple)) else [fake]:
            if not isinstance(value, Tensor) or not depends_on(value, self.symbol):
                continue
            count = math.prod(
                n if isinstance(n, int) else self.number(n, length) for n in value.shape
            )
            if count > MOST_ELEMENTS:
                raise NotCausalError(
                    node, f"{count} elements for {length} tokens are too many to look at each"
                )

    def number(self, value: Any, length: int) -> Any:
        """A symbolic number for a length."""
        expression = value.node.expr.subs({self.symbol: length})
        if isinstance(value, SymBool):
            return bool(expression)
        return int(expression) if isinstance(value, SymInt) else float(expression)


def _tensor_inputs(node: Node) -> list[Node]:
    """What a tensor is computed from, apart from numbers; a number is known by its expression."""
    if isinstance(node.meta.get("val"), _SYMBOLIC):
        return []
    return [n for n in node.all_input_nodes if not isinstance(n.meta.get("val"), _SYMBOLIC)]


def _places(value: Tensor) -> int | None:
    """How many times the dim of dynamic extent is run through; None if several dims are dynamic."""
    dynamic = [d for d, n in enumerate(value.shape) if isinstance(n, SymInt)]
    if not dynamic:
        return 0
    return math.prod(value.shape[: dynamic[0]]) if len(dynamic) == 1 else None


def _without_ones(value: Tensor) -> list[Any]:
    return [n for n in exact_sizes(value.shape) if n != 1]


def _equal(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape:
        return False
    return torch.equal(a, b) or (
        a.is_floating_point() and bool(((a == b) | (a != a) & (b != b)).all())
    )
