"""Activations that are quantized with a range of their own, token by token."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.program_view import renamed_signature
from executorch.exir.incremental.values import arguments
from executorch.exir.passes.lower_torchao_quantization import (
    lower_torchao_quantization,
    quantized_operators,
)
from executorch.exir.torch_internals import set_parts


def quantize_by_token(program: ExportedProgram) -> ExportedProgram:
    """The program with its dynamic quantization by token: a new one, or `program` itself.

    Before    s, z = choose_qparams(x); q = quantize_per_tensor(x, s, z)
              y = dequantize_per_tensor(q, s, z)
    After     choose_qparams_per_token_asymmetric, (de)quantize_per_token: a token's numbers do not
              depend on the other tokens. Delegates compute it so in either case.
    Requires  a program as torch.export gives it; what torchao quantized is named as to_edge does.
    Leaves    other ranges than those of int8, and what has no dim of dynamic size.
    """
    program = lower_torchao_quantization(program)
    quantized = quantized_operators() if _chosen(program) else None
    if quantized is None:
        return program
    new = copy.copy(program)
    set_parts(new, graph_module=copy.deepcopy(program.graph_module))
    set_parts(new, graph_signature=renamed_signature(program.graph_signature, new.graph_module))
    for node in _chosen(new):
        _choose_by_token(node, quantized)
    return new


def _name(node: Node) -> str:
    return str(node.target).removeprefix("quantized_decomposed.")


def _chosen(program: ExportedProgram) -> list[Node]:
    return [n for n in program.graph.nodes if _name(n) == "choose_qparams.tensor"]


def _choose_by_token(choose: Node, quantized: Any) -> None:
    x, low, high, _, dtype = arguments(choose)
    is_static = all(isinstance(n, int) for n in x.meta["val"].shape)
    parts = {n.args[1]: n for n in choose.users if n.target is operator.getitem}
    if is_static or (low, high, dtype) != (-128, 127, torch.int8) or set(parts) != {0, 1}:
        return
    encoded = [n for n in parts[0].users if _name(n) == "quantize_per_tensor.tensor"]
    restored = [n for n in parts[0].users if _name(n) == "dequantize_per_tensor.tensor"]
    users = {*parts[0].users, *parts[1].users}
    if users != {*encoded, *restored} or any(arguments(n)[0] is not x for n in encoded):
        return
    if any(arguments(n)[0] not in encoded for n in restored):
        return
    target = quantized.choose_qparams_per_token_asymmetric.default
    chosen = insert_before(choose, target, (x, dtype))
    scale, zero = (
        insert_before(choose, operator.getitem, (chosen, i), value=chosen.meta["val"][i])
        for i in (0, 1)
    )
    integers = (scale, zero, low, high, dtype)
    for node in encoded:
        replace_node(
            node, insert_before(node, quantized.quantize_per_token.default, (x, *integers))
        )
    for node in restored:
        args = (arguments(node)[0], *integers, node.meta["val"].dtype)
        replace_node(node, insert_before(node, quantized.dequantize_per_token.default, args))
    for node in (*parts.values(), choose):
        node.graph.erase_node(node)
