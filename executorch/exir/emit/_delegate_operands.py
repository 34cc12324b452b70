"""A check of what a delegate call gets: the order of dims that its backend was lowered for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from executorch.exir.tensor import TensorSpec, dim_order_of


def check_operands(call: Node, lowered: Any) -> None:
    """ValueError where a tensor has another order of dims than the input that was lowered.

    The backend's payload would read its elements in a wrong order.
    """
    program = getattr(lowered, "original_module", None)
    if program is None:
        return
    inputs = set(program.graph_signature.user_inputs)
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in inputs]
    for i, (operand, given) in enumerate(zip(call.args[1:], placeholders, strict=False)):
        value = given.meta.get("val")
        spec = operand.meta.get("spec") if isinstance(operand, Node) else None
        if not isinstance(value, torch.Tensor) or not isinstance(spec, TensorSpec):
            continue
        found, expected = list(spec.dim_order), list(dim_order_of(value))
        if _large(found, value.shape) != _large(expected, value.shape):
            raise ValueError(
                f"operand {i} ({operand}) has its dims in the order {found}, but "
                f"{lowered.backend_id} was given {given.name} in the order {expected}"
            )


def _large(order: Sequence[int], shape: Sequence[Any]) -> list[int]:
    """The order of dims whose extent is not 1: those of extent 1 may stand anywhere."""
    return [dim for dim in order if not (isinstance(shape[dim], int) and shape[dim] == 1)]
