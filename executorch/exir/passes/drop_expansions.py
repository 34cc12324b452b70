"""Operands that were expanded for operators which broadcast by themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from executorch.exir.graph.graph_edit import compute_value, same_layout, same_shape
from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.graph.program_view import Dialect

_aten = torch.ops.aten


def _read_unexpanded(call: Node) -> bool:
    pair: Any = call.args[:2]
    shape = call.meta["val"].shape
    whole = [isinstance(n, Node) and same_shape(n.meta["val"].shape, shape) for n in pair]
    for i, operand in enumerate(pair):
        if not all(whole) or operand.target is not _aten.expand_copy.default:
            continue
        args = (*pair[:i], operand.args[0], *pair[i + 1 :])
        if same_layout(compute_value(call.target, args, call.kwargs), call.meta["val"]):
            call.args = args
            return True
    return False


class DropExpansions(CallPass):
    """Let operators that broadcast read what was expanded for them.

    Before    y = mul(x, expand_copy(gate, x.shape))
    After     y = mul(x, gate)
    Requires  a functional graph, in which expand is expand_copy already.
    Ensures   equal values, and the same layout of the result; backends without an operator that
              expands need not be left for it.
    Leaves    expansions that give the result its shape, and their other readers.
    """

    takes = frozenset({Dialect.ATEN})
    rules = dict.fromkeys(
        (
            _aten.add.Tensor,
            _aten.sub.Tensor,
            _aten.mul.Tensor,
            _aten.div.Tensor,
            _aten.maximum.default,
            _aten.minimum.default,
        ),
        _read_unexpanded,
    )
