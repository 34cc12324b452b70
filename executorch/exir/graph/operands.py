"""Operands in places for tensors, and the dtypes that arithmetic gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from torch.fx import Node

from executorch.exir.torch_internals import OpOverload, schema_of


@cache
def tensor_places(op: OpOverload) -> tuple[tuple[int, str], ...]:
    """(position, name) of the arguments of `op` that are one tensor, optional or not."""
    places = []
    for i, argument in enumerate(schema_of(op).arguments):
        type_ = argument.type
        if isinstance(type_, torch.OptionalType):
            type_ = type_.getElementType()
        if isinstance(type_, torch.TensorType):
            places.append((i, argument.name))
    return tuple(places)


def operands(node: Node) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """The arguments of `node` in places for tensors, each with a function that replaces it."""
    for position, name in tensor_places(node.target):  # type: ignore[arg-type]
        if position < len(node.args):
            yield node.args[position], partial(node.update_arg, position)
        elif name in node.kwargs:
            yield node.kwargs[name], partial(node.update_kwarg, name)


def scalar_operands(node: Node) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """Those of `operands` that are Python numbers."""
    if node.op == "call_function" and isinstance(node.target, OpOverload):
        for operand, replace in operands(node):
            if isinstance(operand, (bool, int, float, complex)):
                yield operand, replace


def symbolic_operands(node: Node) -> Iterator[tuple[Node, Callable[[Any], None]]]:
    """Those of `operands` that are nodes with a symbolic number as value."""
    if node.op == "call_function" and isinstance(node.target, OpOverload):
        for operand, replace in operands(node):
            if isinstance(operand, Node) and isinstance(
                operand.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)
            ):
                yield operand, replace


def number_type(number: Any) -> type:
    """bool, int, float or complex, also for symbolic numbers."""
    if isinstance(number, (bool, torch.SymBool)):
        return bool
    if isinstance(number, complex):
        return complex
    return int if isinstance(number, (int, torch.SymInt)) else float


_DEFAULT = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float32,
    complex: torch.complex64,
}


def dtype_beside(node: Node, number: Any) -> torch.dtype:
    """The dtype PyTorch computes in when `number` meets the tensor operands of `node`."""
    tensors = []
    for operand, _ in operands(node):
        value = operand.meta.get("val") if isinstance(operand, Node) else None
        is_condition = node.target is torch.ops.aten.where.self and operand is node.args[0]
        if isinstance(value, torch.Tensor) and not is_condition:
            tensors.append((value.dtype, value.dim() > 0))
    kind = number_type(number)
    dtype = _promote(tuple(tensors), kind) if tensors else _DEFAULT[kind]
    if node.target is torch.ops.aten.div.Tensor and not (
        dtype.is_floating_point or dtype.is_complex
    ):
        return torch.get_default_dtype()
    return dtype


@cache
def _promote(tensors: tuple[tuple[torch.dtype, bool], ...], number: type | None) -> torch.dtype:
    samples = [torch.empty((1,) if dims else (), dtype=dtype) for dtype, dims in tensors]
    dtype = samples[0].dtype
    merged = samples[0]
    for other in samples[1:]:
        dtype = torch.result_type(merged, other)
        merged = torch.empty((1,) if merged.dim() or other.dim() else (), dtype=dtype)
    return dtype if number is None else torch.result_type(merged, number(1))


def promoted_dtype(values: list[torch.Tensor]) -> torch.dtype:
    """The dtype PyTorch computes in when these tensors meet."""
    return _promote(tuple((v.dtype, v.dim() > 0) for v in values), None)
