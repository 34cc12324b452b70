"""The value table of one method, and how Python literals become values."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from executorch.exir import schema
from executorch.exir.schema import EValue, KernelTypes, TensorShapeDynamism
from executorch.exir.tensor import layout_enum, memory_format_enum, scalar_type_enum
from executorch.exir.torch_internals import OpOverload, schema_of


@cache
def argument_kinds(op: OpOverload) -> tuple[str, ...]:
    """For every argument of the schema its type without Optional, e.g. "float", "List[int]"."""
    return tuple(_kind(a.type) for a in schema_of(op).arguments)


def _kind(type_: Any) -> str:
    if isinstance(type_, torch.OptionalType):
        inner = _kind(type_.getElementType())
        return "Optional[Tensor]" if inner == "Tensor" else inner
    if isinstance(type_, torch.ListType):
        return f"List[{_kind(type_.getElementType())}]"
    return str(type_)


class ValueTable:
    """Values in index order. A literal gets a new value each time: kernels may write scalars."""

    def __init__(self) -> None:
        self.values: list[EValue] = []

    def add(self, value: KernelTypes) -> int:
        self.values.append(EValue(value))
        return len(self.values) - 1

    def add_number(self, value: Any) -> int:
        """The place of a number that is computed at run time, by the type it has when traced."""
        if isinstance(value, (bool, torch.SymBool)):
            return self.add(schema.Bool(False))
        if isinstance(value, (float, torch.SymFloat)):
            return self.add(schema.Double(0.0))
        return self.add(schema.Int(0))

    def add_literal(self, value: Any, kind: str = "") -> int:
        """A Python literal as an argument of type `kind` (any, if empty). TypeError for objects
        that a program cannot hold."""
        if value is None:
            return self.add(_empty_tensor() if kind == "Tensor" else schema.Null())
        if isinstance(value, (bool, int, float)):
            return self.add(_number(value, kind))
        if isinstance(value, str):
            value.encode()  # UnicodeEncodeError, a ValueError, for lone surrogates
            return self.add(schema.String(value))
        if isinstance(value, torch.dtype):
            return self.add(schema.Int(int(scalar_type_enum(value))))
        if isinstance(value, torch.layout):
            return self.add(schema.Int(layout_enum(value)))
        if isinstance(value, torch.memory_format):
            return self.add(schema.Int(memory_format_enum(value)))
        raise TypeError(f"a {type(value).__name__} cannot be an argument in a program: {value!r}")

    def add_list(self, items: list[Any], kind: str) -> int:
        """A list whose Tensors and symbolic numbers are `Index`es of values already."""
        element = kind[len("List[") : -1] if kind.startswith("List[") else _element_kind(items)
        if element == "Tensor":
            return self.add(schema.TensorList([_index(i) for i in items]))
        if element == "Optional[Tensor]":
            return self.add(
                schema.OptionalTensorList([-1 if i is None else _index(i) for i in items])
            )
        if element == "bool":
            return self.add(schema.BoolList([_literal(i, bool) for i in items]))
        if element == "float" or (element == "number" and any(isinstance(i, float) for i in items)):
            return self.add(schema.DoubleList([float(_literal(i, (int, float))) for i in items]))
        if element in ("int", "SymInt", "number"):
            return self.add(
                schema.IntList(
                    [i if isinstance(i, Index) else self.add_literal(i, "int") for i in items]
                )
            )
        raise TypeError(f"a list of {element} cannot be an argument in a program")


class Index(int):
    """An index into the value table, told apart from a literal int."""


def _element_kind(items: list[Any]) -> str:
    if any(isinstance(i, Index) for i in items):
        return "Tensor"
    if items and all(isinstance(i, bool) for i in items):
        return "bool"
    return "float" if any(isinstance(i, float) for i in items) else "int"


def _index(item: Any) -> int:
    if not isinstance(item, Index):
        raise TypeError(f"{item!r} stands in a list of tensors")
    return int(item)


def _literal(item: Any, types: Any) -> Any:
    if isinstance(item, Index) or not isinstance(item, types):
        raise TypeError(
            "a number computed at run time stands in a list that is fixed ahead of time"
        )
    return item


def _number(value: Any, kind: str) -> KernelTypes:
    """Scalar arguments keep Python's type, others get their schema's."""
    if kind == "float":
        return schema.Double(float(value))
    if kind == "bool":
        return schema.Bool(bool(value))
    if kind in ("int", "SymInt"):
        if isinstance(value, float) and not value.is_integer():
            raise TypeError(f"{value!r} stands where an integer is expected")
        return _int64(int(value))
    if isinstance(value, bool):
        return schema.Bool(value)
    return _int64(value) if isinstance(value, int) else schema.Double(value)


def _int64(value: int) -> schema.Int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit into the 64 bits of a program's integers")
    return schema.Int(value)


def _empty_tensor() -> schema.Tensor:
    return schema.Tensor(
        scalar_type=schema.ScalarType.BYTE,
        storage_offset=0,
        sizes=[0],
        dim_order=[0],
        requires_grad=False,
        layout=0,
        data_buffer_idx=0,
        allocation_info=None,
        shape_dynamism=TensorShapeDynamism.STATIC,
    )
