"""Weights that stay as they are stored until a layer reads them: tensor subclasses of which
`torch.export` makes a dequantization and a plain layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchao.utils import TorchAOBaseTensor

from executorch.exir.torch_internals import disabled_torch_function, make_wrapper_subclass

aten = torch.ops.aten


class ExportableWeight(TorchAOBaseTensor):  # type: ignore[misc]
    """A weight [n, k] of dtype `orig_dtype`, whose parts subclasses name, as TorchAOBaseTensor
    asks, and which `dequantize(dtype)` computes."""

    orig_dtype: torch.dtype

    @staticmethod
    def made(cls: type, n: int, k: int, dtype: torch.dtype, device: torch.device) -> Any:
        """An instance of `cls` without its parts."""
        return make_wrapper_subclass(cls, (n, k), dtype=dtype, device=device)

    def dequantize(self, output_dtype: torch.dtype | None = None) -> Tensor:
        raise NotImplementedError

    def with_parts(self, device: torch.device, dtype: torch.dtype) -> ExportableWeight:
        """The same weight with its parts on `device`, for layers of `dtype`."""
        raise NotImplementedError

    def to(self, *args: Any, **kwargs: Any) -> ExportableWeight:  # type: ignore[override]
        """Moves the parts, and sets the dtype of what is dequantized; nothing is dequantized.
        AssertionError for a dtype that is no float type."""
        device, dtype = kwargs.get("device"), kwargs.get("dtype")
        for arg in args:
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, torch.dtype):
                dtype = arg
            elif isinstance(arg, (str, int, torch.device)) and not isinstance(arg, bool):
                device = arg
        dtype = dtype or self.orig_dtype
        if not dtype.is_floating_point:
            raise AssertionError(f"{type(self).__name__}.to: a float type, not {dtype}")
        return self.with_parts(torch.device(device or self.device), dtype)

    __torch_function__ = disabled_torch_function


implements = ExportableWeight.implements


@implements([aten.linear.default])
def _(func: Any, types: Any, args: Any, kwargs: Any) -> Tensor:
    x, weight, bias = (*args, None)[:3]
    return torch.nn.functional.linear(x, weight.dequantize(x.dtype), bias)


@implements([aten.embedding.default])
def _(func: Any, types: Any, args: Any, kwargs: Any) -> Tensor:
    return torch.nn.functional.embedding(args[1], args[0].dequantize())


@implements([aten.t.default])
def _(func: Any, types: Any, args: Any, kwargs: Any) -> Tensor:
    return args[0].dequantize().t()  # type: ignore[no-any-return]


@implements([aten.detach.default, aten.alias.default])
def _(func: Any, types: Any, args: Any, kwargs: Any) -> Tensor:
    return args[0]  # type: ignore[no-any-return]


@implements([aten._to_copy.default])
def _(func: Any, types: Any, args: Any, kwargs: Any) -> Tensor:
    return args[0].dequantize(kwargs.get("dtype", args[0].orig_dtype))  # type: ignore[no-any-return]
