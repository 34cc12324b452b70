"""The `dim_order_ops` library: copies and empty tensors whose layout is a dim order, not a format.

Importing this module registers the operators, functional and out, for CPU and fake tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.library import Library, register_fake

from executorch.exir.dim_order_utils import get_memory_format

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

lib = Library("dim_order_ops", "DEF")
lib.define(
    f"_to_dim_order_copy(Tensor self, *, {_OPTIONS}, bool non_blocking=False, "
    "int[]? dim_order=None) -> Tensor"
)
lib.define(
    "_to_dim_order_copy.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, "
    "Tensor(a!) out) -> Tensor(a!)"
)
lib.define(f"_empty_dim_order(SymInt[] size, *, {_OPTIONS}, int[]? dim_order=None) -> Tensor")
lib.define(
    "_empty_dim_order.out(SymInt[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)"
)
lib.define(
    "_clone_dim_order(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor"
)
lib.define(
    "_clone_dim_order.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, "
    "Tensor(a!) out) -> Tensor(a!)"
)


def _format(dim_order: Sequence[int] | None) -> torch.memory_format:
    return torch.preserve_format if dim_order is None else get_memory_format(dim_order)


def _to_dim_order_copy(
    self: Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
) -> Tensor:
    return torch.ops.aten._to_copy.default(
        self,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        non_blocking=non_blocking,
        memory_format=_format(dim_order),
    )


def _to_dim_order_copy_out(
    self: Tensor,
    *,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
    out: Tensor,
) -> Tensor:
    return out.copy_(_to_dim_order_copy(self, dtype=out.dtype, dim_order=dim_order), non_blocking)


def _empty_dim_order(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    dim_order: Sequence[int] | None = None,
) -> Tensor:
    return torch.empty(
        size,
        dtype=dtype,
        layout=layout or torch.strided,
        device=device,
        pin_memory=bool(pin_memory),
        memory_format=get_memory_format(dim_order),
    )


def _empty_dim_order_out(
    size: Sequence[int], *, dim_order: Sequence[int] | None = None, out: Tensor
) -> Tensor:
    return out


def _clone_dim_order(
    self: Tensor, *, non_blocking: bool = False, dim_order: Sequence[int] | None = None
) -> Tensor:
    return torch.ops.aten.clone.default(self, memory_format=_format(dim_order))


def _clone_dim_order_out(
    self: Tensor,
    *,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
    out: Tensor,
) -> Tensor:
    return out.copy_(_clone_dim_order(self, dim_order=dim_order), non_blocking)


for _name, _function in (
    ("_to_dim_order_copy", _to_dim_order_copy),
    ("_to_dim_order_copy.out", _to_dim_order_copy_out),
    ("_clone_dim_order", _clone_dim_order),
    ("_clone_dim_order.out", _clone_dim_order_out),
    ("_empty_dim_order.out", _empty_dim_order_out),
):
    lib.impl(_name, _function, "CPU")
    register_fake(f"dim_order_ops::{_name}", _function, lib=lib)

# No tensor argument tells it a device, so it is one function for all.
lib.impl("_empty_dim_order", _empty_dim_order, "CompositeExplicitAutograd")
