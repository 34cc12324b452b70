"""Eager PyTorch as the oracle of a kernel: which overload it stands for, what it returns, and how
near a result must be.

The oracle of Half and BFloat16 is eager in float32, rounded: that is what eager means to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401 (registers quantized_decomposed)

from executorch.exir.passes import dim_order_ops_registry, quantized_ops_registry  # noqa: F401

FACTORY_ARGS = {"dtype", "layout", "device", "pin_memory"}
HALVES = (torch.float16, torch.bfloat16)

# Results that are not values: only their shapes and types are compared.
ANY_VALUE = {
    *("aten::empty", "aten::empty_strided", "dim_order_ops::_empty_dim_order"),
    *("aten::rand", "aten::randn", "aten::rand_like", "aten::randn_like"),
    *("aten::randint", "aten::randperm", "aten::native_dropout"),
}

# Results that only gradients look at are not eager's to the bit: it leaves some of them out.
FIRST_ONLY = {"aten::_embedding_bag", "aten::_embedding_bag_forward_only"}


def packet_of(name: str) -> torch._ops.OpOverloadPacket:
    """`name` as registered; without a namespace, of ATen."""
    namespace, _, rest = name.rpartition("::")
    return getattr(getattr(torch.ops, namespace or "aten"), rest.partition(".")[0])


def overload(name: str) -> torch._ops.OpOverload:
    return getattr(packet_of(name), name.partition(".")[2] or "default")


def functional_of(out: torch._ops.OpOverload) -> torch._ops.OpOverload:
    """The overload that returns what `out` writes."""
    wanted = [(a.name, str(a.type)) for a in out._schema.arguments if not a.is_out]
    names = {name for name, _ in wanted}
    packet = packet_of(out._schema.name)
    for name in packet.overloads():
        candidate = getattr(packet, name)
        arguments = candidate._schema.arguments
        if any(a.is_out for a in arguments) or candidate._schema.is_mutable:
            continue
        offered = [a for a in arguments if a.name in names or a.name not in FACTORY_ARGS]
        if [(a.name, str(a.type)) for a in offered] == wanted:
            return candidate
    raise LookupError(f"{out} has no functional form")


def call_of(
    out: torch._ops.OpOverload, args: list[Any], dtype: torch.dtype
) -> tuple[torch._ops.OpOverload, list[Any], dict[str, Any]]:
    """The functional call for the arguments of `out`, in schema order and without outs."""
    functional = functional_of(out)
    declared = [a for a in out._schema.arguments if not a.is_out]
    positional = [arg for a, arg in zip(declared, args, strict=True) if not a.kwarg_only]
    keywords = {a.name: arg for a, arg in zip(declared, args, strict=True) if a.kwarg_only}
    names = {a.name for a in declared}
    if any(a.name == "dtype" and a.name not in names for a in functional._schema.arguments):
        keywords["dtype"] = dtype
    return functional, positional, keywords


def map_tensors(f: Any, arg: Any) -> Any:
    if isinstance(arg, (list, tuple)):
        return type(arg)(map_tensors(f, item) for item in arg)
    if isinstance(arg, dict):
        return {name: map_tensors(f, item) for name, item in arg.items()}
    return f(arg) if isinstance(arg, torch.Tensor) else arg


def results_of(
    function: Any, args: list[Any], kwargs: dict[str, Any], dtype: torch.dtype
) -> list[torch.Tensor]:
    """What eager returns, with halves computed in float32 where eager can."""
    if dtype not in HALVES:
        return _flat(function(*args, **kwargs))
    wide_args, wide_kwargs = map_tensors(
        lambda t: t.float() if t.dtype == dtype else t, (args, kwargs)
    )
    try:
        wide = _flat(function(*wide_args, **wide_kwargs))
    except Exception:  # what names the dtype, as quantization does
        return _flat(function(*args, **kwargs))
    try:
        dtypes = [t.dtype for t in _flat(function(*args, **kwargs))]
    except NotImplementedError:  # not for halves
        dtypes = [dtype if t.dtype == torch.float32 else t.dtype for t in wide]
    return [
        t.to(d) if d.is_floating_point or d.is_complex else t
        for t, d in zip(wide, dtypes, strict=True)
    ]


def _flat(results: Any) -> list[torch.Tensor]:
    return [results] if isinstance(results, torch.Tensor) else list(results)


def expected(out: torch._ops.OpOverload, args: list[Any], dtype: torch.dtype) -> list[torch.Tensor]:
    functional, positional, keywords = call_of(out, args, dtype)
    return results_of(functional, positional, keywords, dtype)


# Summands of an element of the result, where sizes do not tell. A sampling position is rounded in
# units of the image's extent and chooses among 16 pixels.
SUMMANDS: dict[str, Callable[[list[torch.Tensor]], int]] = {
    "aten::grid_sampler_2d": lambda tensors: 16 * max(tensors[0].shape[2:]) ** 2,
    "aten::grid_sampler_3d": lambda tensors: 8 * max(tensors[0].shape[2:]) ** 2,
}


def tolerance(args: Any, want: torch.Tensor, name: str = "") -> tuple[float, float]:
    """Relative: some roundings of an element. Absolute: of as many summands as there are inputs per
    output, each as large as the largest result."""
    if not (want.dtype.is_floating_point or want.dtype.is_complex):
        return 0, 0
    eps = torch.finfo(want.dtype).eps
    working_eps = max(torch.finfo(torch.float32).eps, eps) if want.dtype in HALVES else eps
    n_inputs = max((a.numel() for a in args if isinstance(a, torch.Tensor)), default=1)
    length = max(1, n_inputs / max(1, want.numel()))
    if name in SUMMANDS:
        length = SUMMANDS[name]([a for a in args if isinstance(a, torch.Tensor)])
    finite = want[want.isfinite()].abs()
    largest = finite.max().item() if finite.numel() else 0.0
    if largest > torch.finfo(want.dtype).max / 4:
        largest = 1.0
    n_roundings = 2 if working_eps != eps else 16
    return n_roundings * eps, 4 * working_eps * length**0.5 * min(largest, 1e4)
