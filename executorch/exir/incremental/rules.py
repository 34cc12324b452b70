"""What each operator does to the dims of tokens: the proof, and the calls of the new graph.

`classify` says what is known of a node's value, or raises NotCausalError; `apply` makes one of its
versions.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.attention import classify_attention, make_attention
from executorch.exir.incremental.convolution import (
    CONVOLUTIONS,
    CUTS,
    PADDINGS,
    classify_convolution,
    classify_cut,
    classify_padding,
    make_convolution,
    make_cut,
)
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import LOCAL, depends_on, token_dims
from executorch.exir.incremental.masks import hidden_after, hidden_by_addend, require_causal
from executorch.exir.incremental.movement import (
    MOVES,
    SIZED_MOVES,
    classify_move,
    extent_dim,
    is_selection,
)
from executorch.exir.incremental.rewriter import FULL, ROWS, Rewriter
from executorch.exir.incremental.values import (
    FIXED,
    LAST,
    LENGTH,
    Kind,
    Value,
    arguments,
    bound_arguments,
)
from executorch.exir.torch_internals import OpOverload

aten = torch.ops.aten

# Elementwise, though not tagged so.
_ELEMENTWISE = {
    aten.dropout.default, aten.native_dropout.default, aten.to.dtype, aten.to.dtype_layout,
    aten.to.device, aten._to_copy.default,
    aten.masked_fill.Scalar, aten.masked_fill.Tensor, aten.where.self, aten.where.ScalarOther,
    aten.where.ScalarSelf, aten.lift_fresh_copy.default, aten.nan_to_num.default,
}  # fmt: skip
# Zero stays zero.
_KEEPS_ZERO = {
    aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar, aten.dropout.default,
    aten.to.dtype, aten.to.dtype_layout, aten.to.device, aten._to_copy.default,
}  # fmt: skip
_SOFTMAX = {aten.softmax.int, aten._softmax.default, aten._safe_softmax.default}
# The last dims, as many as the list says, are normalised.
_NORMS = {aten.layer_norm.default, aten.native_layer_norm.default, aten.rms_norm.default}
# Operators along the dims of their argument `dim`.
_ALONG_DIMS = {
    aten.mean.dim, aten.sum.dim_IntList, aten.var.correction, aten.var.dim, aten.std.correction,
    aten.amax.default, aten.amin.default, aten.prod.dim_int, aten.any.dim, aten.all.dim,
    aten.argmax.default, aten.max.dim, aten.min.dim, aten.logsumexp.default, aten.cumsum.default,
    aten.softmax.int, aten._softmax.default, aten.log_softmax.int, aten._log_softmax.default,
    aten.glu.default, aten.sort.default, aten.topk.default, aten.linalg_vector_norm.default,
}  # fmt: skip
_JOINS = {aten.cat.default: 0, aten.stack.default: 1}
# Places along a dim are picked by index, token by token.
_PICKS = {
    aten.gather.default, aten.scatter.src, aten.scatter.value, aten.scatter_add.default,
}  # fmt: skip
_PRODUCTS = {
    aten.matmul.default, aten.bmm.default, aten.mm.default, aten.baddbmm.default,
    aten.addmm.default, aten.linear.default,
}  # fmt: skip
_ATTENTION = {aten.scaled_dot_product_attention.default}
_RANDOM = (aten.dropout.default, aten.native_dropout.default)


# As well; by name, since they are registered late. Parameters by token broadcast.
_QUANTIZE = "quantized_decomposed."
_ELEMENTWISE_QUANTIZATION = {
    f"{_QUANTIZE}{what}.{overload}"
    for what, overload in (
        ("quantize_per_token", "default"), ("dequantize_per_token", "default"),
        ("quantize_per_tensor", "default"), ("dequantize_per_tensor", "default"),
    )
}  # fmt: skip
# The last dim is gone through.
_CHOOSE_BY_TOKEN = f"{_QUANTIZE}choose_qparams_per_token_asymmetric.default"


def is_elementwise(node: Node) -> bool:
    target = node.target
    return target in _ELEMENTWISE or (
        isinstance(target, OpOverload)
        and (torch.Tag.pointwise in target.tags or str(target) in _ELEMENTWISE_QUANTIZATION)
    )


def is_known(target: OpOverload) -> bool:
    """Whether a rule says what the operator does to tokens, or to what depends on their number."""
    return (
        torch.Tag.pointwise in target.tags
        or target in LOCAL
        or any(target in known for known in (
            _ELEMENTWISE, _SOFTMAX, _NORMS, _ALONG_DIMS, _JOINS, _PICKS, _PRODUCTS, _ATTENTION,
            MOVES, PADDINGS, CONVOLUTIONS, CUTS,
        ))
        or target is aten.embedding.default
    )  # fmt: skip


def can_repeat(node: Node) -> bool:
    """Whether computing the node anew for all tokens costs little beside what it saves to keep."""
    return (
        node.target in MOVES
        or node.target in (operator.getitem, aten.linear.default)
        or (is_elementwise(node) and len(node.all_input_nodes) == 1)
    )


def classify(rw: Rewriter, node: Node) -> Any:
    """A Value, or a list of them; None for what is no value, such as an assertion."""
    fake = node.meta.get("val")
    if fake is None:
        return None
    if not isinstance(fake, (Tensor, list, tuple)):
        return LENGTH
    if node.target is operator.getitem:
        known = rw.values[arguments(node)[0]]
        return known[arguments(node)[1]] if isinstance(known, list) else known
    operands = [rw.values.get(n) for n in node.all_input_nodes]
    kinds = {v.kind for v in operands if isinstance(v, Value)}
    tokens = {Kind.ROWS, Kind.PADDED, Kind.LONGER, Kind.SCORES, Kind.WEIGHTS, Kind.LAST}
    if not kinds & tokens:
        return _without_tokens(rw, node, kinds, fake)
    if (
        isinstance(node.target, OpOverload)
        and torch.Tag.nondeterministic_seeded in node.target.tags
    ):
        _require_no_dropout(node)
    if Kind.LAST in kinds:
        if kinds & (tokens - {Kind.LAST}):
            raise NotCausalError(node, "what the last token gave would reach earlier ones")
        return LAST
    value = _with_tokens(rw, node)
    _require_no_other_length(rw, node, value)
    return value


def _without_tokens(rw: Rewriter, node: Node, kinds: set[Kind], fake: Any) -> Value:
    if (
        isinstance(node.target, OpOverload)
        and torch.Tag.nondeterministic_seeded in node.target.tags
    ):
        raise NotCausalError(node, "it is random")
    depends = Kind.LENGTH in kinds
    values = fake if isinstance(fake, (list, tuple)) else [fake]
    depends |= any(depends_on(v, rw.symbol) for v in values if isinstance(v, Tensor))
    return LENGTH if depends else FIXED


def _with_tokens(rw: Rewriter, node: Node) -> Any:
    target = node.target
    padded = any(rw._is(n, Kind.PADDED) for n in node.all_input_nodes)
    if padded and target not in CONVOLUTIONS:
        raise NotCausalError(node, "tokens padded before the first, and no convolution of them")
    if any(rw._is(n, Kind.LONGER) for n in node.all_input_nodes):
        return classify_cut(rw, node)
    if is_selection(rw, node):
        return LAST
    if target in MOVES:
        return classify_move(rw, node)
    rw.lengths.require_same_numbers(node)
    if target in _ATTENTION:
        return classify_attention(rw, node)
    if is_elementwise(node):
        return _classify_elementwise(rw, node)
    if target in _PRODUCTS:
        return _classify_product(rw, node)
    if target is aten.embedding.default:
        return _classify_embedding(rw, node)
    if target in _SOFTMAX and _operand(rw, node, 0).kind is Kind.SCORES:
        return _classify_softmax(rw, node)
    is_choice = str(target) == _CHOOSE_BY_TOKEN
    if target in PADDINGS:
        return classify_padding(rw, node)
    if target in CONVOLUTIONS:
        return classify_convolution(rw, node)
    if target in _NORMS or target in _ALONG_DIMS or is_choice:
        return _classify_along_dims(rw, node)
    if target in _JOINS:
        return _classify_join(rw, node)
    if target in _PICKS:
        return _classify_pick(rw, node)
    raise NotCausalError(node, "it is not known how this operator moves values between tokens")


def _require_no_other_length(rw: Rewriter, node: Node, value: Any) -> None:
    """No dim but those of tokens may be as long as the text: a sum along it would change."""
    fake = node.meta["val"]
    fakes = fake if isinstance(fake, (list, tuple)) else [fake]
    values = value if isinstance(value, list) else [value] * len(fakes)
    for known, found in zip(values, fakes, strict=True):
        if known.kind is Kind.LAST:
            continue
        for dim, extent in enumerate(found.shape):
            if dim not in known.dims() and depends_on(extent, rw.symbol):
                raise NotCausalError(
                    node, f"dim {dim} of {list(found.shape)} is no dim of tokens, but as long"
                )


def _operand(rw: Rewriter, node: Node, index: int) -> Value:
    value = rw.values.get(arguments(node)[index])
    return value if isinstance(value, Value) else FIXED


def _require_no_dropout(node: Node) -> None:
    if node.target in _ATTENTION:
        return  # it looks at its own probability
    if node.target in _RANDOM:
        probability, training = arguments(node)[1], arguments(node)[2]
        if training is False or probability == 0:
            return
        raise NotCausalError(node, "dropout in training mode; export model.eval()")
    raise NotCausalError(node, "it is random")


# Elementwise operators, joins.


def _aligned(node: Node, operand: Node) -> int:
    """What to add to a dim of the operand to have that of the result."""
    return node.meta["val"].dim() - operand.meta["val"].dim()


def _tensor_operands(node: Node) -> list[Node]:
    return [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), Tensor)]


def _classify_elementwise(rw: Rewriter, node: Node) -> Value:
    if isinstance(node.meta["val"], (list, tuple)):
        raise NotCausalError(node, "several results of an elementwise operator are not supported")
    roles: dict[int, str] = {}
    kinds = set()
    for operand in _tensor_operands(node):
        value = rw.values[operand]
        kinds.add(value.kind)
        for dim, role in value.dims().items():
            at = dim + _aligned(node, operand)
            if roles.setdefault(at, role) != role:
                raise NotCausalError(node, f"dim {at} would be one of queries and of keys")
    places = {role: [d for d, r in roles.items() if r == role] for role in ("row", "col")}
    if any(len(found) > 1 for found in places.values()):
        raise NotCausalError(node, "it combines tokens with other tokens")
    for operand in _tensor_operands(node):
        if rw.values[operand].kind is Kind.LENGTH:
            _check_table_dims(rw, node, operand, roles)
    row = places["row"][0]
    if Kind.SCORES in kinds:
        col = places["col"][0]
        return Value(Kind.SCORES, row, col, hidden_after(rw, node, row, col))
    if Kind.WEIGHTS in kinds:
        if node.target not in _KEEPS_ZERO:
            raise NotCausalError(node, "weights of later tokens may not stay zero")
        return Value(Kind.WEIGHTS, row, places["col"][0])
    return Value(Kind.ROWS, row)


def _check_table_dims(rw: Rewriter, node: Node, operand: Node, roles: dict[int, str]) -> None:
    for dim in token_dims(operand.meta["val"], rw.symbol):
        if dim + _aligned(node, operand) not in roles:
            raise NotCausalError(
                node, f"dim {dim} of {operand.name}, one of positions, meets no dim of tokens"
            )
    rw.lengths.prove([operand])


def _classify_embedding(rw: Rewriter, node: Node) -> Value:
    weight, ids = arguments(node)[0], _operand(rw, node, 1)
    is_fixed = rw.values[weight].kind in (Kind.FIXED, Kind.LENGTH)
    if not is_fixed or token_dims(weight.meta["val"], rw.symbol) or ids.kind is not Kind.ROWS:
        raise NotCausalError(node, "it picks among tokens or positions")
    return ids


def _classify_join(rw: Rewriter, node: Node) -> Value:
    dim = arguments(node)[1] if len(arguments(node)) > 1 else 0
    rank = node.meta["val"].dim()
    dim = dim % rank
    stacks = node.target is aten.stack.default
    rows = {rw.values[n].row for n in arguments(node)[0] if rw.values[n].kind is Kind.ROWS}
    if any(rw.values[n].kind in (Kind.SCORES, Kind.WEIGHTS) for n in arguments(node)[0]):
        raise NotCausalError(node, "scores are joined")
    if len(rows) != 1:
        raise NotCausalError(node, "tokens lie along different dims of the operands")
    row = rows.pop()
    if not stacks and dim == row:
        raise NotCausalError(node, "values are joined along the tokens")
    for operand in arguments(node)[0]:
        if rw.values[operand].kind is not Kind.ROWS and token_dims(
            operand.meta["val"],
            rw.symbol,
        ) != [row]:
            raise NotCausalError(node, f"{operand} has no dim of tokens where the others have")
    return Value(Kind.ROWS, row + 1 if stacks and dim <= row else row)


def _classify_pick(rw: Rewriter, node: Node) -> Value:
    value = _classify_elementwise(rw, node)
    if value.kind is not Kind.ROWS:
        raise NotCausalError(node, "scores are picked by index")
    dim = arguments(node)[1] % node.meta["val"].dim()
    extents = [n.meta["val"].shape[value.row] for n in _tensor_operands(node)]
    if dim == value.row or any(n != extents[0] for n in extents):
        raise NotCausalError(node, "it picks among tokens")
    return value


# Operators along dims.


def _classify_along_dims(rw: Rewriter, node: Node) -> Any:
    value = _operand(rw, node, 0)
    if value.kind is not Kind.ROWS:
        raise NotCausalError(node, "scores that were not made weights by a softmax over the keys")
    rank = arguments(node)[0].meta["val"].dim()
    given = bound_arguments(node).get("dim")
    if str(node.target) == _CHOOSE_BY_TOKEN:
        dims = [rank - 1]
    elif node.target in _NORMS:
        dims = list(range(rank - len(arguments(node)[1]), rank))
    elif given is None or given == []:
        dims = list(range(rank))
    else:
        dims = [d % rank for d in (given if isinstance(given, (list, tuple)) else [given])]
    if value.row in dims:
        raise NotCausalError(node, "it computes over the tokens")
    fake = node.meta["val"]
    if isinstance(fake, (list, tuple)):
        return [Value(Kind.ROWS, _only_token_dim(rw, node, v)) for v in fake]
    return Value(Kind.ROWS, _only_token_dim(rw, node, fake))


def _only_token_dim(rw: Rewriter, node: Node, fake: Tensor) -> int:
    dims = token_dims(fake, rw.symbol)
    if len(dims) != 1:
        raise NotCausalError(node, f"{len(dims)} dims of {list(fake.shape)} may be that of tokens")
    return dims[0]


def _classify_softmax(rw: Rewriter, node: Node) -> Value:
    value = _operand(rw, node, 0)
    dim = arguments(node)[1] % node.meta["val"].dim()
    if dim != value.col:
        raise NotCausalError(node, "softmax over the queries, or beside the keys")
    require_causal(rw, node, value.hidden)
    return Value(Kind.WEIGHTS, value.row, value.col)


# Products.


def _classify_product(rw: Rewriter, node: Node) -> Value:
    if node.target is aten.linear.default:
        value = _operand(rw, node, 0)
        rank = node.meta["val"].dim()
        weights = [_operand(rw, node, i).kind for i in range(1, len(arguments(node)))]
        if value.kind is not Kind.ROWS or value.row == rank - 1 or set(weights) - {Kind.FIXED}:
            raise NotCausalError(node, "a linear over the tokens, or whose weight depends on them")
        return value
    first = 1 if node.target in (aten.addmm.default, aten.baddbmm.default) else 0
    value = _product_value(rw, node, arguments(node)[first], arguments(node)[first + 1])
    if first == 1:
        addend = arguments(node)[0]
        if rw.values[addend].kind not in (Kind.FIXED, Kind.LENGTH):
            raise NotCausalError(node, "the addend of a product depends on tokens")
        if rw.values[addend].kind is Kind.LENGTH:
            _check_table_dims(rw, node, addend, value.dims())
        if value.kind is Kind.SCORES:
            assert value.row is not None and value.col is not None
            hidden = hidden_by_addend(rw, node, value.row, value.col)
            return Value(value.kind, value.row, value.col, hidden)
    return value


def _product_value(rw: Rewriter, node: Node, a: Node, b: Node) -> Value:
    va, vb = rw.values[a], rw.values[b]
    rank_a, rank_b, rank = a.meta["val"].dim(), b.meta["val"].dim(), node.meta["val"].dim()
    if min(rank_a, rank_b) < 2:
        raise NotCausalError(node, "a product with a vector")
    m, k, n = rank_a - 2, rank_a - 1, rank_b - 1
    if va.kind is Kind.WEIGHTS and vb.kind is Kind.ROWS:
        if (va.row, va.col, vb.row) == (m, k, n - 1):
            return Value(Kind.ROWS, rank - 2)
    elif va.kind is Kind.ROWS and vb.kind is Kind.ROWS:
        if va.row == m and vb.row == n:
            return Value(Kind.SCORES, rank - 2, rank - 1)
        if va.row < m and vb.row < n - 1 and va.row + rank - rank_a == vb.row + rank - rank_b:
            return Value(Kind.ROWS, va.row + rank - rank_a)
    elif va.kind is Kind.ROWS and vb.kind is Kind.FIXED and va.row != k:
        return Value(Kind.ROWS, va.row + rank - rank_a)
    elif va.kind is Kind.FIXED and vb.kind is Kind.ROWS and vb.row != n - 1:
        return Value(Kind.ROWS, vb.row + rank - rank_b)
    raise NotCausalError(node, "a product that sums over tokens, but is no attention")


# Making versions.


def apply(rw: Rewriter, node: Node, version: str) -> Any:
    """The call of `node` for its rows, or (FULL) for all tokens."""
    value = rw.values[node]
    if node.target is operator.getitem:
        source = rw.new[version, arguments(node)[0]]
        return source[arguments(node)[1]]
    if node.target in _ATTENTION:
        return make_attention(rw, node)
    if node.target in CONVOLUTIONS:
        return make_convolution(rw, node)
    if any(rw._is(n, Kind.LONGER) for n in node.all_input_nodes):
        return make_cut(rw, node)
    if node.target in SIZED_MOVES:
        operand = rw.new[version, arguments(node)[0]]
        sizes = rw.sizes(node, value, version)
        return rw.call(node.target, operand, sizes, *arguments(node)[2:], **node.kwargs)
    # A number left is an extent of the rows, or of all keys, or the same for each length.
    dim = extent_dim(node)
    is_of_rows = dim is not None and rw.values[arguments(node)[0]].row == dim
    numbers = version if is_of_rows else FULL
    return rw.copy(node, lambda n: operand_of(rw, node, n, version), numbers)


def operand_of(rw: Rewriter, node: Node, operand: Node, version: str) -> Any:
    value = rw.values[operand]
    if isinstance(value, list):
        return rw.new[version, operand]
    if value.kind is Kind.FIXED:
        return rw.now(operand)
    if value.kind is Kind.LENGTH:
        dims = _table_roles(rw, node, operand)
        if version == FULL:
            dims = dict.fromkeys(dims, "col")
        return rw.table(operand, dims)
    if version == ROWS and _is_other_side(rw, node, operand):
        return rw.full(operand)
    return rw.new[version, operand]


def _table_roles(rw: Rewriter, node: Node, operand: Node) -> dict[int, str]:
    """The part each dim of a table plays in `node`."""
    value = rw.values[node]
    value = value[0] if isinstance(value, list) else value
    if node.target in _JOINS:
        row = next(rw.values[n].row for n in arguments(node)[0] if rw.values[n].kind is Kind.ROWS)
        return {row: "row"}
    shift = _aligned(node, operand)
    return {d - shift: role for d, role in value.dims().items()}


def _is_other_side(rw: Rewriter, node: Node, operand: Node) -> bool:
    """Whether all tokens' entries are needed: the keys or the values of a written attention."""
    if node.target not in _PRODUCTS or node.target is aten.linear.default:
        return False
    first = 1 if node.target in (aten.addmm.default, aten.baddbmm.default) else 0
    if operand is not arguments(node)[first + 1]:
        return False
    left = rw.values[arguments(node)[first]].kind
    return left is Kind.WEIGHTS or rw.values[node].kind is Kind.SCORES
