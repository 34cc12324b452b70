"""Every kernel gives what eager PyTorch gives, for every type, layout and kind of argument.

The oracle of Half and BFloat16 is eager in float32, rounded: that is what eager means to compute.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from executorch.runtime import Runtime
from tests.ops import samples_of_shapes  # noqa: F401  (adds its rows)
from tests.ops.program import Call, run
from tests.ops.samples import SAMPLES, Maker

FACTORY_ARGS = {"dtype", "layout", "device", "pin_memory"}
HALVES = (torch.float16, torch.bfloat16)


def overload(name: str) -> torch._ops.OpOverload:
    packet, _, out = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), out or "default")


def functional_of(out: torch._ops.OpOverload) -> torch._ops.OpOverload:
    """The overload that returns what `out` writes."""
    wanted = [(a.name, str(a.type)) for a in out._schema.arguments if not a.is_out]
    names = {name for name, _ in wanted}
    packet = getattr(torch.ops.aten, out._schema.name.removeprefix("aten::"))
    for name in packet.overloads():
        candidate = getattr(packet, name)
        arguments = candidate._schema.arguments
        if any(a.is_out for a in arguments) or candidate._schema.is_mutable:
            continue
        offered = [a for a in arguments if a.name in names or a.name not in FACTORY_ARGS]
        if [(a.name, str(a.type)) for a in offered] == wanted:
            return candidate
    raise LookupError(f"{out} has no functional form")


def map_tensors(f: Any, arg: Any) -> Any:
    if isinstance(arg, (list, tuple)):
        return type(arg)(map_tensors(f, item) for item in arg)
    return f(arg) if isinstance(arg, torch.Tensor) else arg


def expected(out: torch._ops.OpOverload, args: list[Any], dtype: torch.dtype) -> list[torch.Tensor]:
    """What eager returns, with halves computed in float32."""
    if dtype in HALVES:
        args = map_tensors(lambda t: t.float() if t.dtype == dtype else t, args)
    functional = functional_of(out)
    declared = [a for a in out._schema.arguments if not a.is_out]
    positional = [arg for a, arg in zip(declared, args, strict=True) if not a.kwarg_only]
    keywords = {a.name: arg for a, arg in zip(declared, args, strict=True) if a.kwarg_only}
    if any(a.name == "dtype" and a.name not in keywords for a in functional._schema.arguments):
        keywords["dtype"] = dtype
    results = functional(*positional, **keywords)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    if dtype in HALVES:
        results = [t.to(dtype) if t.dtype == torch.float32 else t for t in results]
    return results


def tolerance(args: list[Any], want: torch.Tensor) -> tuple[float, float]:
    """Relative: some roundings of an element. Absolute: of as many summands as there are inputs per
    output, each as large as the largest result."""
    if not want.dtype.is_floating_point:
        return 0, 0
    eps = torch.finfo(want.dtype).eps
    working_eps = max(torch.finfo(torch.float32).eps, eps) if want.dtype in HALVES else eps
    n_inputs = max((a.numel() for a in args if isinstance(a, torch.Tensor)), default=1)
    length = max(1, n_inputs / max(1, want.numel()))
    finite = want[want.isfinite()].abs()
    largest = finite.max().item() if finite.numel() else 0.0
    if largest > torch.finfo(want.dtype).max / 4:
        largest = 1.0
    n_roundings = 2 if working_eps != eps else 16
    return n_roundings * eps, 4 * working_eps * length**0.5 * min(largest, 1e4)


CASES = [(name, dtype) for name, row in SAMPLES.items() for dtype in row.dtypes]


@pytest.mark.parametrize(
    ("name", "dtype"), CASES, ids=[f"{n}-{str(d).removeprefix('torch.')}" for n, d in CASES]
)
def test_kernel_agrees_with_eager(name: str, dtype: torch.dtype) -> None:
    out = overload(name)
    samples = SAMPLES[name].make(Maker(dtype))
    wants = [expected(out, args, dtype) for args in samples]
    list_out = str(out._schema.arguments[-1].type).startswith("List")
    calls = [
        Call(f"aten::{name}", args, want, list_out=list_out)
        for args, want in zip(samples, wants, strict=True)
    ]
    for args, found, want in zip(samples, run(calls), wants, strict=True):
        assert len(found) == len(want)
        for got, right in zip(found, want, strict=True):
            rtol, atol = tolerance(args, right)
            torch.testing.assert_close(
                got,
                right,
                rtol=rtol,
                atol=atol,
                equal_nan=True,
                check_stride=False,
                msg=lambda text, args=args: f"{name} on {args}: {text}",
            )


# Prim operators, what has no functional form in PyTorch, and what is random: tested beside their
# subject.
NOT_SAMPLED = {
    "aten::_local_scalar_dense",
    "aten::_native_batch_norm_legit.out",
    "aten::copy_",
    "aten::empty.out",
    "aten::index_put_",
    "aten::native_dropout.out",
    "aten::rand.out",
    "aten::randn.out",
    "aten::sym_numel",
    "aten::sym_size.int",
    "aten::sym_stride.int",
}


def test_every_operator_is_sampled() -> None:
    names = Runtime.get().operator_registry.operator_names
    aten = {name for name in names if name.startswith("aten::")}
    assert {n for n in aten if n.removeprefix("aten::") not in SAMPLES} == NOT_SAMPLED
