"""Numbers given as arguments, types of results and operands of mixed types: what eager PyTorch
refuses is refused, and what it computes is computed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from tests.ops.oracle import functional_of, overload
from tests.ops.program import Call, run

U8 = torch.ones(4, dtype=torch.uint8)
I8 = torch.full((4,), 100, dtype=torch.int8)
I32 = torch.arange(4, dtype=torch.int32)
F32 = torch.linspace(-2, 2, 4)
F16 = F32.half()
BOOL = torch.tensor([True, False, True, False])
LONG = torch.tensor([0, 1])
C64 = torch.complex(F32, F32.flip(0))
with warnings.catch_warnings():  # torch calls them experimental
    warnings.simplefilter("ignore")
    C32 = C64.to(torch.complex32)


def eager(name: str, args: tuple[Any, ...], result: torch.dtype | None) -> torch.Tensor:
    """What eager returns, written to an out tensor of type `result` where one is given."""
    out = overload(name)
    declared = [a for a in out._schema.arguments if not a.is_out][: len(args)]
    positional = [arg for a, arg in zip(declared, args, strict=True) if not a.kwarg_only]
    keywords = {a.name: arg for a, arg in zip(declared, args, strict=True) if a.kwarg_only}
    if result is None:
        returned: torch.Tensor = functional_of(out)(*positional, **keywords)
        return returned
    (out_name,) = (a.name for a in out._schema.arguments if a.is_out)
    keywords[out_name] = torch.empty(0, dtype=result)
    written: torch.Tensor = out(*positional, **keywords)
    return written


REFUSED: list[tuple[str, tuple[Any, ...], torch.dtype | None]] = [
    ("add.out", (U8, U8, 300), None),
    ("add.Scalar_out", (U8, 1, 300), None),
    ("sub.out", (I8, I8, -128), None),
    ("rsub.Scalar_out", (U8, 1, 300), None),
    ("add.out", (F16, F16, 1e9), None),
    ("add.out", (I32, I32, True), None),
    ("add.out", (I32, I32, 1.0), None),
    ("fill.Scalar_out", (U8, 300), None),
    ("fill.Scalar_out", (F16, 1e9), None),
    ("fill.Scalar_out", (F32, 1e300), None),
    ("full.out", ([2], 300), torch.uint8),
    ("full.out", ([2], -256), torch.uint8),
    ("full.out", ([2], 127.9), torch.int8),
    ("full.out", ([2], float("nan")), torch.int32),
    ("full.out", ([2], float("inf")), torch.int64),
    ("full.out", ([2], 65519), torch.float16),
    ("full_like.out", (U8, 300), None),
    ("scalar_tensor.out", (300,), torch.uint8),
    ("scalar_tensor.out", (1e300,), torch.float32),
    ("constant_pad_nd.out", (U8, [1, 1], 300), None),
    ("scatter.value_out", (U8, 0, LONG, 300), None),
    ("scatter.value_out", (F32, 0, LONG, 1e300), None),
    ("hardtanh.out", (I8, -200, 200), None),
    ("hardtanh.out", (U8, -1, 1), None),
    ("hardtanh.out", (F16, -1e6, 1e6), None),
    ("clamp.out", (U8, 0, 300), None),
    ("clamp.out", (F16, -1e9, 1e9), None),
    ("leaky_relu.out", (F32, 1e300), None),
    ("elu.out", (F32, 1e300), None),
    ("masked_fill.Scalar_out", (U8, BOOL, 300), None),
    ("pow.Tensor_Scalar_out", (U8, 300), None),
    ("addmm.out", (I32.view(2, 2), I32.view(2, 2), I32.view(2, 2), 1e30), None),
    ("elu.out", (F32, 1, 1, 1), torch.float64),
    ("gelu.out", (F32,), torch.float16),
    ("leaky_relu.out", (F16, 0.1), torch.float32),
    ("hardtanh.out", (F32, -1, 1), torch.float64),
    ("clamp.out", (F32, -1, 1), torch.float64),
    ("masked_fill.Scalar_out", (F32, BOOL, 1), torch.float64),
    ("rsub.Scalar_out", (F32, 1, 1), torch.float64),
    ("isinf.out", (F32,), torch.float32),
    ("isnan.out", (F32,), torch.int32),
    ("mean.out", (I32, [0]), torch.float32),
    ("mean.out", (BOOL, [0]), torch.float32),
    ("amax.out", (I32, [0]), torch.float32),
    ("max.unary_out", (F32,), torch.int32),
]

COMPUTED: list[tuple[str, tuple[Any, ...], torch.dtype | None]] = [
    # Integers are computed in the promoted type, and then become the result's.
    ("mul.out", (I8, I8), torch.int64),
    ("add.out", (I8, I8), torch.float32),
    ("sub.out", (-I8, I8), torch.int32),
    ("mul.out", (F16 / 3, F16 / 7), torch.float32),
    ("add.out", (I8, I8, 2), torch.int16),
    # Numbers that fit, and those that wrap.
    ("full.out", ([2], -255), torch.uint8),
    ("full.out", ([2], 2.7), torch.uint8),
    ("full.out", ([2], float("inf")), torch.float16),
    ("full.out", ([2], float("nan")), torch.bool),
    ("fill.Scalar_out", (U8, -3), None),
    ("scalar_tensor.out", (1e9,), torch.float16),
    ("constant_pad_nd.out", (U8, [0, 0], 300), None),
    ("constant_pad_nd.out", (U8, [1, 1], 2.5), None),
    ("sub.out", (U8, U8, 255), None),
    ("add.out", (BOOL, BOOL, 2), None),
    ("mul.Scalar_out", (U8, 300), None),
    ("hardtanh.out", (I8, -2.7, 2.7), None),
    ("clamp.out", (U8, -1, None), None),
    ("clamp.Tensor_out", (F32, F32, F32), torch.float64),
    ("leaky_relu.out", (F16, 1e9), None),
    ("masked_fill.Scalar_out", (U8, BOOL, -1), None),
    ("scatter.value_out", (U8, 0, LONG[:0], 300), None),
    # Accepted where eager accepts.
    ("addmm.out", (I32.view(2, 2), I32.view(2, 2), I32.view(2, 2), 1.5, 2.5), None),
    ("max.unary_out", (I32,), torch.float32),
    ("min.unary_out", (I32,), torch.float16),
    ("mean.out", (BOOL, [0], False, torch.float32), torch.float32),
    ("linear.out", (torch.ones(2, 4), torch.ones(3, 4), torch.tensor(2.0)), None),
    ("linear.out", (torch.ones(2, 4), torch.ones(3, 4), torch.tensor([[1.0], [2.0]])), None),
    ("linear.out", (torch.ones(2, 5, 4), torch.ones(3, 4), torch.rand(2, 1, 3)), None),
    # Complex numbers.
    ("add.out", (C64, F32), None),
    ("mul.out", (F32, torch.tensor(1j)), None),
    ("mul.Scalar_out", (C64, 2), None),
    ("add.out", (C32, C32, 3), None),
    ("mul.out", (C32, C32), None),
    ("div.out", (C64, C64 + 1), torch.complex128),
    ("abs.out", (C32,), None),
    ("neg.out", (C32,), None),
    ("sum.IntList_out", (C64.view(2, 2), [1]), None),
    ("sum.IntList_out", (C64.view(2, 2), [0], True, torch.complex128), torch.complex128),
    ("sum.IntList_out", (F32, [0], False, torch.complex64), torch.complex64),
    ("mean.out", (C64.view(2, 2), [0]), None),
    ("mm.out", (C64.view(2, 2), C64.view(2, 2).t()), None),
    ("bmm.out", (C64.view(1, 2, 2), C64.view(1, 2, 2)), None),
    ("addmm.out", (C64[:2], C64.view(2, 2), C64.view(2, 2), 2, 3), None),
    ("linear.out", (C64.view(2, 2), C64.view(2, 2), C64[:2]), None),
    ("full.out", ([2], 3), torch.complex64),
    ("full.out", ([2], 3), torch.complex32),
    ("full_like.out", (C64, -0.5), torch.complex128),
    ("constant_pad_nd.out", (C64, [2, 1], 2), None),
    ("constant_pad_nd.out", (C64, [-1, 1], 0.5), torch.complex64),
    ("slice_scatter.out", (C64, C64[:2] * 2, 0, 1, 3, 1), None),
    ("select_scatter.out", (C64, C64[0] * 2, 0, 1), None),
    ("_to_copy.out", (C64,), torch.complex128),
    ("_to_copy.out", (F16,), torch.complex64),
]


def identity(case: tuple[str, tuple[Any, ...], torch.dtype | None]) -> str:
    name, args, result = case
    shown = [str(a.dtype)[6:] if isinstance(a, torch.Tensor) else str(a) for a in args]
    return f"{name}({', '.join(shown)})" + (f" -> {str(result)[6:]}" if result else "")


@pytest.mark.parametrize("case", REFUSED, ids=identity)
def test_what_eager_refuses_is_refused(case: Any) -> None:
    name, args, result = case
    with pytest.raises(RuntimeError):
        eager(name, args, result)
    size = [2, 2] if name == "addmm.out" else [4]
    out = torch.empty(size, dtype=result or args[0].dtype)
    with pytest.raises(RuntimeError, match="InvalidArgument"):
        run([Call(f"aten::{name}", with_defaults(name, args), [out])])


@pytest.mark.parametrize("case", COMPUTED, ids=identity)
def test_what_eager_computes_is_computed(case: Any) -> None:
    name, args, result = case
    expected = eager(name, args, result)
    ((found,),) = run([Call(f"aten::{name}", with_defaults(name, args), [expected])])
    assert found.dtype == expected.dtype
    if found.dtype == torch.complex32:
        found, expected = found.to(torch.complex64), expected.to(torch.complex64)
    torch.testing.assert_close(found, expected, equal_nan=True)


def with_defaults(name: str, args: tuple[Any, ...]) -> list[Any]:
    """`args`, and the defaults of the arguments that are not given."""
    given = [a for a in overload(name)._schema.arguments if not a.is_out]
    return [*args, *(a.default_value for a in given[len(args) :])]
