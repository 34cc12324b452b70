"""Weights in the integers they are quantized to, in as few bytes as the runtime reads them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.passes.constant_prop_pass import replace_by_constants
from executorch.exir.passes.lower_torchao_quantization import quantized_operators
from executorch.exir.torch_internals import op_name

_NAMESPACE = "quantized_decomposed::"
_BYTES = (torch.int8, torch.uint8)


class CompactQuantizedWeights(Pass):
    """Quantize weights now, and look tables up before they are dequantized.

    Before    q = quantize_per_channel(w, ...); y = embedding(dequantize_per_channel(t, ...), i)
    After     q = placeholder; y = embedding_byte(t, ..., i), or embedding_4bit with packed t
    Requires  core ATen, decomposed.
    Ensures   equal values. A float weight stays if others read it too.
    Leaves    programs that compute gradients; tables whose dequantized form others read.
    """

    takes = frozenset({Dialect.ATEN})

    def edit(self, view: ProgramView) -> bool:
        if view.is_trained:
            return False
        known: dict[Node, Tensor] = dict(view.constants)
        for node in list(view.graph.nodes):
            if not _operator(node).startswith("quantize_per_"):
                continue
            if all(n in known for n in node.all_input_nodes):
                args, kwargs = map_arg((node.args, node.kwargs), known.__getitem__)
                with torch.no_grad():
                    known[node] = node.target(*args, **kwargs)
        return any([replace_by_constants(view, known), _look_up_in_integers(view)])


def _operator(node: Node) -> str:
    """The name of the quantized operator that a node calls; else nothing."""
    op = overload_of(node.target) if node.op == "call_function" else None
    if op is None or not op.name().startswith(_NAMESPACE):
        return ""
    return str(op_name(op))


def _look_up_in_integers(view: ProgramView) -> bool:
    known: dict[Node, Tensor] = dict(view.constants)
    lookups = view.graph.find_nodes(op="call_function", target=torch.ops.aten.embedding.default)
    modified = any([_look_up(node, known) for node in list(lookups)])
    if modified:
        replace_by_constants(view, known)
    return modified


def _look_up(node: Node, known: dict[Node, Tensor]) -> bool:
    table, indices = node.args[:2]
    if not isinstance(table, Node) or len(table.users) != 1:
        return False
    parts = _dequantized(table)
    if parts is None or parts[0] not in known or known[parts[0]].dtype not in _BYTES:
        return False
    weight, scales, zeros, low, high = parts
    if zeros in known and not known[zeros].any():
        zeros = None
    op = quantized_operators().embedding_byte.default
    if (low, high) == (-8, 7) and known[weight].shape[1] % 2 == 0:
        op = quantized_operators().embedding_4bit.default
        packed = _pack(known[weight])
        weight = insert_before(table, torch.ops.aten.detach.default, (weight,), value=packed)
        known[weight] = packed
    args = (weight, scales, zeros, low, high, indices)
    replace_node(node, insert_before(node, op, args, value=node.meta["val"]))
    table.graph.erase_node(table)
    return True


def _dequantized(table: Node) -> tuple[Any, Any, Any, int, int] | None:
    """Integers, scales [rows] or [rows, groups], zero points and range of a dequantized matrix."""
    if len(table.meta["val"].shape) != 2 or table.meta["val"].dtype != torch.float32:
        return None
    if _operator(table) == "dequantize_per_channel":
        q, scales, zeros, axis, low, high = table.args[:6]
        if axis != 0:
            return None
    elif _operator(table) == "dequantize_per_channel_group":
        q, scales, zeros, low, high = table.args[:5]
    else:
        return None
    return q, scales, zeros, low, high  # type: ignore[return-value]


def _pack(values: Tensor) -> Tensor:
    """Two values of -8 .. 7 in a byte, plus 8 each, the first in the high half."""
    shifted = (values + 8).to(torch.uint8)
    return shifted[:, 0::2] << 4 | shifted[:, 1::2]
