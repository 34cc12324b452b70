"""What each operator does to the dims of tokens: the proof, and the calls of the new graph.

`classify` says what is known of a node's value, or raises NotCausalError; `apply` makes one of its
versions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
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
    classify_padding_by_join,
    make_convolution,
    make_cut,
)
from executorch.exir.incremental.einsum import EINSUM, classify_einsum, make_einsum
from executorch.exir.incremental.elementwise import (
    ELEMENTWISE,
    aligned,
    check_table_dims,
    classify_elementwise,
    tensor_operands,
)
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import LOCAL, depends_on, token_dims
from executorch.exir.incremental.masks import require_causal, require_seen
from executorch.exir.incremental.movement import (
    MOVES,
    SIZED_MOVES,
    classify_move,
    extent_dim,
    index_of_all,
    is_selection,
    make_numbers,
)
from executorch.exir.incremental.products import (
    PRODUCTS,
    classify_linear,
    classify_product,
    is_other_side,
    is_triangle,
)
from executorch.exir.incremental.rewriter import FULL, ROWS, Rewriter
from executorch.exir.incremental.running import (
    RUNNING,
    classify_moved_on,
    is_of_all,
    make_of_all,
)
from executorch.exir.incremental.sinks import (
    OVER_KEYS,
    classify_over_keys,
    classify_sink,
    classify_without_sink,
)
from executorch.exir.incremental.values import (
    FIXED,
    LAST,
    LENGTH,
    PAIRS,
    Kind,
    Value,
    arguments,
    bound_arguments,
)
from executorch.exir.incremental.zeros import classify_tril, make_tril
from executorch.exir.torch_internals import OpOverload

aten = torch.ops.aten

_SOFTMAX = {aten.softmax.int, aten._softmax.default, aten._safe_softmax.default}
# The last dims, as many as the list says, are normalised.
_NORMS = {aten.layer_norm.default, aten.native_layer_norm.default, aten.rms_norm.default}
# The last dim is gone through. By name, since it is registered late.
_CHOOSE_BY_TOKEN = "quantized_decomposed.choose_qparams_per_token_asymmetric.default"
# Operators along the dims of their argument `dim`.
_ALONG_DIMS = {
    aten.mean.dim, aten.sum.dim_IntList, aten.var.correction, aten.var.dim, aten.std.correction,
    aten.amax.default, aten.amin.default, aten.prod.dim_int, aten.any.dim, aten.all.dim,
    aten.argmax.default, aten.max.dim, aten.min.dim, aten.logsumexp.default,
    aten.log_softmax.int, aten._log_softmax.default, aten.glu.default, aten.sort.default,
    aten.topk.default, aten.linalg_vector_norm.default, *RUNNING,
}  # fmt: skip
_LOOKUPS = {aten.index.Tensor, aten.index_select.default}
_JOINS = {aten.cat.default, aten.stack.default}
# Places along a dim are picked, token by token: which argument the dim is.
_PICKS: dict[Any, int] = {
    aten.gather.default: 1, aten.scatter.src: 1, aten.scatter.value: 1,
    aten.scatter_add.default: 1, aten.slice_scatter.default: 2,
}  # fmt: skip
_ATTENTION = aten.scaled_dot_product_attention.default
# Which of their arguments is the probability.
_DROPOUTS = {aten.dropout.default: "p", aten.native_dropout.default: "p", _ATTENTION: "dropout_p"}


def is_known(target: OpOverload) -> bool:
    """Whether a rule says what the operator does to tokens, or to what depends on their number."""
    return _rule(target) is not None or target in LOCAL


def is_elementwise(target: Any) -> bool:
    return _rule(target) is classify_elementwise


def can_repeat(node: Node) -> bool:
    """Whether computing the node anew for all tokens costs little beside what it saves to keep."""
    return (
        node.target in MOVES
        or node.target in (operator.getitem, aten.linear.default)
        or (is_elementwise(node.target) and len(node.all_input_nodes) == 1)
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
    _require_not_random(node)
    operands = [rw.values.get(n) for n in node.all_input_nodes]
    kinds = {v.kind for v in operands if isinstance(v, Value)}
    tokens = {Kind.ROWS, Kind.PADDED, Kind.LONGER, Kind.SCORES, Kind.WEIGHTS, Kind.LAST}
    if not kinds & tokens:
        return _without_tokens(rw, kinds, fake)
    if Kind.LAST in kinds:
        if kinds & (tokens - {Kind.LAST}):
            raise NotCausalError(node, "what the last token gave would reach earlier ones")
        return LAST
    value = _with_tokens(rw, node)
    _require_no_other_length(rw, node, value)
    return value


def _without_tokens(rw: Rewriter, kinds: set[Kind], fake: Any) -> Value:
    depends = Kind.LENGTH in kinds
    values = fake if isinstance(fake, (list, tuple)) else [fake]
    depends |= any(depends_on(v, rw.symbol) for v in values if isinstance(v, Tensor))
    return LENGTH if depends else FIXED


def _with_tokens(rw: Rewriter, node: Node) -> Any:
    padded = any(rw._is(n, Kind.PADDED) for n in node.all_input_nodes)
    if padded and node.target in CUTS:
        return classify_moved_on(rw, node)
    if padded and node.target not in CONVOLUTIONS:
        raise NotCausalError(node, "tokens padded before the first, and no convolution of them")
    if any(rw._is(n, Kind.LONGER) for n in node.all_input_nodes):
        return classify_cut(rw, node)
    if node.target in MOVES and rw.operand_value(node, 0).beside:
        return classify_without_sink(rw, node)
    if node.target in _LOOKUPS and rw.operand_value(node, 0).kind is Kind.FIXED:
        return _classify_lookup(rw, node)
    if is_selection(rw, node):
        return LAST
    rule = _rule(node.target)
    if rule is not classify_move:  # that looks at its numbers itself
        rw.lengths.require_same_numbers(node)
    if rule is None:
        raise NotCausalError(node, _unknown(node))
    return rule(rw, node)


def _unknown(node: Node) -> str:
    if node.meta.get("unbacked_bindings"):
        return (
            "which tokens it picks depends on their values; a mixture of experts may compute every "
            "expert of all tokens and multiply by zero what was not picked"
        )
    return "it is not known how this operator moves values between tokens"


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


def _require_not_random(node: Node) -> None:
    target = node.target
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return
    if target not in _DROPOUTS:
        raise NotCausalError(node, "it is random")
    given = bound_arguments(node)
    if given[_DROPOUTS[target]] != 0 and given.get("train") is not False:
        raise NotCausalError(node, "dropout in training mode; export model.eval()")


def _classify_embedding(rw: Rewriter, node: Node) -> Value:
    weight, ids = arguments(node)[0], rw.operand_value(node, 1)
    is_fixed = rw.values[weight].kind in (Kind.FIXED, Kind.LENGTH)
    if not is_fixed or token_dims(weight.meta["val"], rw.symbol) or ids.kind is not Kind.ROWS:
        raise NotCausalError(node, "it picks among tokens or positions")
    return ids


def _classify_lookup(rw: Rewriter, node: Node) -> Value:
    """Entries of a constant at the places that the tokens say."""
    if node.target is aten.index_select.default:
        dim, ids = arguments(node)[1:3]
    else:
        dim, ids = next((d, n) for d, n in enumerate(arguments(node)[1]) if n is not None)
    value, fake = rw.values[ids], ids.meta["val"]
    is_single = len(node.all_input_nodes) == 2
    if not is_single or value.kind is not Kind.ROWS or fake.dtype in (torch.bool, torch.uint8):
        raise NotCausalError(node, "its entries are picked by more than one tensor, or by truth")
    return Value(Kind.ROWS, dim % arguments(node)[0].meta["val"].dim() + value.row)


def _classify_one_hot(rw: Rewriter, node: Node) -> Value:
    value = rw.operand_value(node, 0)
    if value.kind is not Kind.ROWS:
        raise NotCausalError(node, "scores or weights are its operand, no numbers of classes")
    return value


def _classify_complex(rw: Rewriter, node: Node) -> Value:
    """Of the last dim, which the two parts of a number have, or which they get."""
    value, rank = rw.operand_value(node, 0), arguments(node)[0].meta["val"].dim()
    is_last = value.row == rank - 1 and node.target is aten.view_as_complex.default
    if value.kind is not Kind.ROWS or is_last:
        raise NotCausalError(node, "tokens, scores or weights would be parts of complex numbers")
    return value


def _classify_batch_norm(rw: Rewriter, node: Node) -> Value:
    value = rw.operand_value(node, 0)
    if bound_arguments(node)["training"]:
        raise NotCausalError(node, "a batch norm in training mode; export model.eval()")
    if value.kind is not Kind.ROWS or value.row == 1:
        raise NotCausalError(node, "a batch norm whose channels are tokens")
    return value


def _classify_join(rw: Rewriter, node: Node) -> Value:
    dim = arguments(node)[1] if len(arguments(node)) > 1 else 0
    rank = node.meta["val"].dim()
    dim = dim % rank
    stacks = node.target is aten.stack.default
    if rw.values[arguments(node)[0][0]].kind is Kind.SCORES:
        return classify_sink(rw, node)
    rows = {rw.values[n].row for n in arguments(node)[0] if rw.values[n].kind is Kind.ROWS}
    if any(rw.values[n].kind in (Kind.SCORES, Kind.WEIGHTS) for n in arguments(node)[0]):
        raise NotCausalError(node, "scores are joined")
    if len(rows) != 1:
        raise NotCausalError(node, "tokens lie along different dims of the operands")
    row = rows.pop()
    if not stacks and dim == row:
        return classify_padding_by_join(rw, node, row)
    for operand in arguments(node)[0]:
        if rw.values[operand].kind is not Kind.ROWS and token_dims(
            operand.meta["val"],
            rw.symbol,
        ) != [row]:
            raise NotCausalError(node, f"{operand} has no dim of tokens where the others have")
    return Value(Kind.ROWS, row + 1 if stacks and dim <= row else row)


def _classify_gather(rw: Rewriter, node: Node) -> Value:
    """Of a query's numbers, such as one for each distance, one for each key."""
    operand, dim, index = arguments(node)[:3]
    value, dim = rw.values[operand], dim % node.meta["val"].dim()
    if value.kind is Kind.FIXED and rw.values[index].kind is Kind.ROWS:
        return _classify_gather_of_constant(rw, node, index, dim)
    places = token_dims(index.meta["val"], rw.symbol)
    is_by_key = rw.values[index].kind is Kind.LENGTH and dim in places
    if value.kind is not Kind.ROWS or not is_by_key or set(places) != {value.row, dim}:
        return _classify_pick(rw, node)
    if value.row == dim:
        raise NotCausalError(node, "it picks among tokens")
    check_table_dims(rw, node, index, {value.row: "row", dim: "col"})
    return Value(Kind.SCORES, value.row, dim)


def _classify_gather_of_constant(rw: Rewriter, node: Node, index: Node, dim: int) -> Value:
    """Entries of a constant, all along the dim of tokens: any token may pick any of them."""
    value = rw.values[index]
    if value.row != dim:
        raise NotCausalError(node, "each token's entries are picked from another place")
    return Value(Kind.ROWS, dim)


def _classify_pick(rw: Rewriter, node: Node) -> Value:
    value = classify_elementwise(rw, node)
    if value.kind is not Kind.ROWS:
        raise NotCausalError(node, "scores are picked by index")
    at = _PICKS[node.target]
    dim = (arguments(node)[at] if len(arguments(node)) > at else 0) % node.meta["val"].dim()
    extents = [n.meta["val"].shape[value.row] for n in tensor_operands(node)]
    if dim == value.row or any(n != extents[0] for n in extents):
        raise NotCausalError(node, "it picks among tokens")
    return value


def _classify_along_dims(rw: Rewriter, node: Node) -> Any:
    value = rw.operand_value(node, 0)
    if value.kind in PAIRS and node.target in OVER_KEYS:
        return classify_over_keys(rw, node)
    if value.kind is Kind.WEIGHTS and node.target is aten.sum.dim_IntList:
        return _classify_sum_of_weights(rw, node, value)
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
    fake = node.meta["val"]
    if value.row in dims and node.target in RUNNING:
        return [value] * len(fake) if isinstance(fake, (list, tuple)) else value
    if value.row in dims:
        raise NotCausalError(node, "it computes over the tokens")
    if isinstance(fake, (list, tuple)):
        return [Value(Kind.ROWS, _only_token_dim(rw, node, v)) for v in fake]
    return Value(Kind.ROWS, _only_token_dim(rw, node, fake))


def _classify_sum_of_weights(rw: Rewriter, node: Node, value: Value) -> Value:
    rank = arguments(node)[0].meta["val"].dim()
    if [d % rank for d in arguments(node)[1] or ()] != [value.col]:
        raise NotCausalError(node, "weights that are not added over the keys alone")
    return Value(Kind.ROWS, _only_token_dim(rw, node, node.meta["val"]))


def _only_token_dim(rw: Rewriter, node: Node, fake: Tensor) -> int:
    dims = token_dims(fake, rw.symbol)
    if len(dims) != 1:
        raise NotCausalError(node, f"{len(dims)} dims of {list(fake.shape)} may be that of tokens")
    return dims[0]


def _classify_softmax(rw: Rewriter, node: Node) -> Value:
    value = rw.operand_value(node, 0)
    if value.kind not in PAIRS:
        return _classify_along_dims(rw, node)  # type: ignore[no-any-return]
    dim = arguments(node)[1] % node.meta["val"].dim()
    if dim != value.col:
        raise NotCausalError(node, "softmax over the queries, or beside the keys")
    require_causal(rw, node, value.hidden)
    require_seen(rw, node, arguments(node)[0])
    return Value(Kind.WEIGHTS, value.row, value.col, beside=value.beside)


Rule = Callable[[Rewriter, Node], Any]
# By operator, or by its name where it is registered late.
_RULES: dict[Any, Rule] = {
    **dict.fromkeys(ELEMENTWISE, classify_elementwise),
    **dict.fromkeys(MOVES, classify_move),
    **dict.fromkeys(PADDINGS, classify_padding),
    **dict.fromkeys(CONVOLUTIONS, classify_convolution),
    **dict.fromkeys(PRODUCTS, classify_product),
    **dict.fromkeys((*_ALONG_DIMS, *_NORMS, _CHOOSE_BY_TOKEN), _classify_along_dims),
    **dict.fromkeys(_SOFTMAX, _classify_softmax),
    **dict.fromkeys(_JOINS, _classify_join),
    **dict.fromkeys(_PICKS, _classify_pick),
    aten.tril.default: classify_tril,
    aten.one_hot.default: _classify_one_hot,
    **dict.fromkeys((aten.view_as_complex.default, aten.view_as_real.default), _classify_complex),
    aten.batch_norm.default: _classify_batch_norm,
    aten.linear.default: classify_linear,
    aten.embedding.default: _classify_embedding,
    _ATTENTION: classify_attention,
    EINSUM: classify_einsum,
    aten.gather.default: _classify_gather,
}


def _rule(target: Any) -> Rule | None:
    rule = _RULES.get(target) or _RULES.get(str(target))
    if rule is None and isinstance(target, OpOverload) and torch.Tag.pointwise in target.tags:
        return classify_elementwise
    return rule


# Making versions.


def apply(rw: Rewriter, node: Node, version: str) -> Any:
    """The call of `node` for its rows, or (FULL) for all tokens."""
    value = rw.values[node]
    if node.target is operator.getitem:
        source = rw.new[version, arguments(node)[0]]
        return source[arguments(node)[1]]
    if node.target is _ATTENTION:
        return make_attention(rw, node)
    if node.target is EINSUM:
        return make_einsum(rw, node)
    if node.target is aten.tril.default:
        return make_tril(rw, node)
    if version == ROWS and is_of_all(rw, node):
        return make_of_all(rw, node)
    if node.target in CONVOLUTIONS:
        return make_convolution(rw, node)
    if any(rw._is(n, Kind.LONGER) for n in node.all_input_nodes):
        return make_cut(rw, node)
    if node.target in SIZED_MOVES:
        operand = operand_of(rw, node, arguments(node)[0], version)
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
    if operand in rw.lengths.shifted:
        return rw.now(operand)
    if operand is index_of_all(rw, node):
        return make_numbers(rw, operand, version)
    if value.kind is Kind.LENGTH:
        dims = _table_roles(rw, node, operand)
        if version == FULL:
            dims = dict.fromkeys(dims, "col")
        return rw.table(operand, dims)
    if version == ROWS and is_other_side(rw, node, operand):
        return rw.full(operand)
    return rw.new[version, operand]


def _table_roles(rw: Rewriter, node: Node, operand: Node) -> dict[int, str]:
    """The part each dim of a table plays in `node`."""
    value = rw.values[node]
    value = value[0] if isinstance(value, list) else value
    if is_triangle(rw, node, operand):
        rank = operand.meta["val"].dim()
        return {rank - 2: "row", rank - 1: "col"}
    if node.target in _JOINS:
        kinds = (Kind.ROWS, Kind.SCORES)
        row = next(rw.values[n].row for n in arguments(node)[0] if rw.values[n].kind in kinds)
        return {row: "row"}
    shift = aligned(node, operand)
    return {d - shift: role for d, role in value.dims().items()}
