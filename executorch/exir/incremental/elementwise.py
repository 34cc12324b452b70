"""Operators that compute each entry from those at the same place of their operands."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from executorch.exir.incremental.bounds import bounds_after
from executorch.exir.incremental.errors import NotCausalError
from executorch.exir.incremental.lengths import token_dims
from executorch.exir.incremental.masks import hidden_after, require_not_raised
from executorch.exir.incremental.operators import FILL, WHERE
from executorch.exir.incremental.rewriter import Rewriter
from executorch.exir.incremental.shifts import is_shifted_table, remains_shifted
from executorch.exir.incremental.sinks import common_sinks
from executorch.exir.incremental.sources import is_own_of_tokens, large_in
from executorch.exir.incremental.token_masks import added_mask, masks_after
from executorch.exir.incremental.values import PAIRS, Kind, TokenMask, Value
from executorch.exir.incremental.zeros import is_zero_later

aten = torch.ops.aten

# Besides all that torch tags so. Quantization goes by name, since it is registered late; its
# parameters by token broadcast.
ELEMENTWISE = {
    aten.dropout.default, aten.native_dropout.default, aten.to.dtype, aten.to.dtype_layout,
    aten.to.device, aten._to_copy.default, aten.masked_fill.Tensor, aten.where.Scalar,
    aten.where.ScalarOther, aten.where.ScalarSelf, aten.lift_fresh_copy.default,
    aten.floor_divide.default, aten.log_sigmoid.default,
    "quantized_decomposed.quantize_per_token.default",
    "quantized_decomposed.dequantize_per_token.default",
    "quantized_decomposed.quantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_tensor.default",
}  # fmt: skip


def aligned(node: Node, operand: Node) -> int:
    """What to add to a dim of the operand to have that of the result."""
    return node.meta["val"].dim() - operand.meta["val"].dim()


def tensor_operands(node: Node) -> list[Node]:
    return [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), Tensor)]


def classify_elementwise(rw: Rewriter, node: Node) -> Value:
    if isinstance(node.meta["val"], (list, tuple)):
        raise NotCausalError(node, "several results of an elementwise operator are not supported")
    roles = _roles(rw, node)
    shifted = False
    for operand in tensor_operands(node):
        if rw.values[operand].kind is Kind.LENGTH:
            shifted |= _check_table(rw, node, operand, roles)
    row = next(d for d, role in roles.items() if role == "row")
    col = next((d for d, role in roles.items() if role == "col"), None)
    bounds = bounds_after(rw, node, row, col)
    if col is None:
        return Value(Kind.ROWS, row, bounds=bounds)
    masks = masks_after(rw, node, _added_masks(rw, node, row, col))
    beside = common_sinks(rw, node)
    shifted |= remains_shifted(rw, node)
    if not shifted and is_zero_later(rw, node, row, col):
        return Value(Kind.WEIGHTS, row, col, bounds=bounds, beside=beside)
    hidden = hidden_after(rw, node, row, col, bounds)
    return Value(Kind.SCORES, row, col, hidden, bounds, masks, beside=beside, shifted=shifted)


def _added_masks(rw: Rewriter, node: Node, row: int, col: int) -> list[TokenMask]:
    """The operands by which tokens, such as padding, say that they are hidden."""
    added = []
    for operand in tensor_operands(node):
        is_rows = rw._is(operand, Kind.ROWS)
        place = rw.values[operand].row + aligned(node, operand) if is_rows else None
        is_of_queries = place == row and is_own_of_tokens(rw, operand)
        is_told = place == col or is_of_queries or _is_told_here(rw, node, operand)
        large = large_in(rw, operand) if is_told else None
        if large is None:
            continue
        mask = added_mask(node, operand)
        if mask is None:
            raise NotCausalError(node, f"{large.name} is a mask that tokens make themselves")
        if not is_of_queries:  # which raise all keys alike
            require_not_raised(rw, node, mask)
        added.append(mask)
    return added


def _is_told_here(rw: Rewriter, node: Node, operand: Node) -> bool:
    """Whether an operand of queries and keys that tokens make themselves, and that may be a mask,
    meets what a model computes or what is known to be a mask."""
    is_pairs = rw._is(operand, *PAIRS) and operand.meta["val"].dtype.is_floating_point
    if not is_pairs or rw.values[operand].masks or not is_own_of_tokens(rw, operand):
        return False
    others = [n for n in tensor_operands(node) if n is not operand]
    is_joined = node.target in FILL | WHERE or any(rw.values[n].masks for n in others)
    return is_joined or not is_own_of_tokens(rw, *others)


def _roles(rw: Rewriter, node: Node) -> dict[int, str]:
    """The dims of tokens: that of queries and, where tokens meet tokens, of keys behind it."""
    roles: dict[int, str] = {}
    tokens: set[int] = set()
    places: set[int] = set()
    for operand in tensor_operands(node):
        value, shift = rw.values[operand], aligned(node, operand)
        if value.kind in PAIRS:
            for dim, role in value.dims().items():
                if roles.setdefault(dim + shift, role) != role:
                    raise NotCausalError(
                        node, f"dim {dim + shift} would be one of queries and of keys"
                    )
        elif value.row is not None:
            tokens.add(value.row + shift)
        elif value.kind is Kind.LENGTH:
            places.update(d + shift for d in token_dims(operand.meta["val"], rw.symbol))
    if not roles:  # those of what is computed here for each query and key
        roles = dict(zip(sorted(tokens | places), ("row", "col"), strict=False))
        tokens |= places
    if not tokens <= set(roles) or len(roles) > 2:
        raise NotCausalError(node, "it combines tokens with other tokens")
    return roles


def _check_table(rw: Rewriter, node: Node, operand: Node, roles: dict[int, str]) -> bool:
    """Whether the scores to which it is added are right but for a shift."""
    try:
        check_table_dims(rw, node, operand, roles)
    except NotCausalError:
        if not is_shifted_table(rw, node, operand, roles):
            raise
        return True
    return False


def check_table_dims(rw: Rewriter, node: Node, operand: Node, roles: dict[int, str]) -> None:
    dims = token_dims(operand.meta["val"], rw.symbol)
    for dim, extent in enumerate(operand.meta["val"].shape):
        if dim not in dims and rw.lengths.differs(extent):
            raise NotCausalError(node, f"dim {dim} of {operand.name} is {extent}, not the text's")
    for dim in dims:
        if dim + aligned(node, operand) not in roles:
            raise NotCausalError(
                node, f"dim {dim} of {operand.name}, one of positions, meets no dim of tokens"
            )
    rw.lengths.prove([operand])
