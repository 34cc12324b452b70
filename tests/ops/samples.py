"""Arguments to try each operator with.

A sample is the list of the arguments of the operator's out variant, in schema order, without the
outs. Rows are written as functions of a maker of tensors of one dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
BOOL = (torch.bool,)
NUMBERS = FLOATS + INTS
ALL = NUMBERS + BOOL
INF, NAN = float("inf"), float("nan")


class Maker:
    """Random tensors of one dtype, the same in every run."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.random = torch.Generator().manual_seed(0)

    def __call__(self, *shape: int, low: float = -4, high: float = 4) -> torch.Tensor:
        """Values in [low, high]: floats are multiples of 1/8, which every type holds exactly."""
        steps = 8 if self.dtype.is_floating_point else 1
        if not (self.dtype.is_signed or self.dtype.is_complex):
            low = max(low, 0)
        if self.dtype == torch.bool:
            low, high = min(low, 1), min(high, 1)
        numbers = torch.randint(
            round(low * steps), round(high * steps) + 1, shape, generator=self.random
        )
        return (numbers / steps).to(self.dtype) if steps > 1 else numbers.to(self.dtype)

    def last(self, *shape: int, **limits: float) -> torch.Tensor:
        """In channels-last memory."""
        return self(*shape, **limits).contiguous(memory_format=torch.channels_last)

    def edge(self) -> torch.Tensor:
        """The ends of the type's range, and what is special among floats."""
        if self.dtype == torch.bool:
            return torch.tensor([True, False])
        if not self.dtype.is_floating_point:
            info = torch.iinfo(self.dtype)
            return torch.tensor([info.min, info.max, 0, 1], dtype=self.dtype)
        tiny, huge = torch.finfo(self.dtype).tiny, torch.finfo(self.dtype).max
        return torch.tensor([INF, -INF, NAN, 0.0, -0.0, tiny, -tiny, huge, -huge], dtype=self.dtype)

    def long(self, *shape: int, high: int) -> torch.Tensor:
        """Indices in [0, high)."""
        return torch.randint(0, high, shape, generator=self.random)

    def mask(self, *shape: int) -> torch.Tensor:
        return torch.randint(0, 2, shape, generator=self.random).bool()


@dataclass
class Row:
    dtypes: tuple[torch.dtype, ...]
    make: Callable[[Maker], list[list[Any]]]


SAMPLES: dict[str, Row] = {}


def row(
    names: str, dtypes: tuple[torch.dtype, ...], make: Callable[[Maker], list[list[Any]]]
) -> None:
    for name in names.split():
        SAMPLES[name] = Row(dtypes, make)


def rows(dtypes: tuple[torch.dtype, ...], **makes: Callable[[Maker], list[list[Any]]]) -> None:
    """Rows named by keyword: `__` stands for the dot."""
    for name, make in makes.items():
        row(name.replace("__", "."), dtypes, make)


def unary(m: Maker) -> list[list[Any]]:
    shapes = [(), (0, 3), (7,), (3, 1, 5), (2, 600)]
    return [[m(*s)] for s in shapes] + [[m.last(2, 3, 4, 5)], [m.edge()]]


def inside_unit(m: Maker) -> list[list[Any]]:
    return [[m(40, low=-1, high=1)], [m(3, 600, low=-1, high=1)], [m.edge()]]


def binary(m: Maker) -> list[list[Any]]:
    return [
        [m(3, 5), m(3, 5)],
        [m(3, 700), m(700)],
        [m(3, 1, 2), m(4, 1)],
        [m(), m(2, 2)],
        [m(5), m()],
        [m(0, 4), m(1)],
        [m.last(2, 3, 4, 5), m.last(2, 3, 4, 5)],
        [m.last(2, 3, 4, 5), m(3, 1, 1)],
        [m(2, 3, 4, 5), m.last(2, 3, 4, 5)],
        [m.edge().repeat_interleave(m.edge().numel()), m.edge().repeat(m.edge().numel())],
    ]


def divisor(m: Maker) -> list[list[Any]]:
    """Pairs whose second is not zero."""
    ones = [[m(3, 40), m(3, 40, low=1)], [m(3, 1, 5), m(4, 1, low=2)], [m(3), m(low=3)]]
    if m.dtype.is_signed:
        ones.append([m(30), -m(30, low=1)])
    if m.dtype.is_floating_point:
        ones.append([m(20), m(20, low=0, high=0)])
    return ones


def with_number(*numbers: Any) -> Callable[[Maker], list[list[Any]]]:
    def make(m: Maker) -> list[list[Any]]:
        tensors = [m(3, 4), m(0), m(), m.last(1, 2, 3, 4)]
        chosen = [n for n in numbers if m.dtype.is_floating_point or not isinstance(n, float)]
        return [[t, n] for t in tensors for n in chosen]

    return make


def with_mode(make: Callable[[Maker], list[list[Any]]], *modes: Any):
    return lambda m: [args + [mode] for args in make(m) for mode in modes]


def scaled(make: Callable[[Maker], list[list[Any]]]) -> Callable[[Maker], list[list[Any]]]:
    def with_alpha(m: Maker) -> list[list[Any]]:
        alphas = [1, 2, -0.5] if m.dtype.is_floating_point else [1, 3]
        scaled_too = [args + [alpha] for args in make(m)[:-1] for alpha in alphas]
        if m.dtype == torch.bool:  # any alpha but 0 is True
            scaled_too += [[m(3, 40), m(3, 40), alpha] for alpha in (-1, 256, 0)]
        return [make(m)[-1] + [1], *scaled_too]  # eager may fuse: no scaled infinities

    return with_alpha


# One operand.
row("ceil.out floor.out round.out trunc.out abs.out neg.out relu.out", NUMBERS, unary)
row(
    "atan.out asinh.out cos.out cosh.out erf.out exp.out expm1.out log.out log10.out log1p.out "
    "log2.out reciprocal.out rsqrt.out sigmoid.out sin.out sinh.out sqrt.out tan.out tanh.out",
    ALL,
    unary,
)
row("acos.out asin.out atanh.out acosh.out", ALL, inside_unit)
row("sign.out logical_not.out isinf.out isnan.out _conj_physical.out", ALL, unary)
row("bitwise_not.out", INTS + BOOL, unary)
row("erfc.out exp2.out lgamma.out angle.out signbit.out", ALL, unary)
row("erfinv.out", ALL, inside_unit)
row("copysign.out fmax.out fmin.out", ALL, lambda m: binary(m))
row("hypot.out", FLOATS, lambda m: binary(m))
row("round.decimals_out", FLOATS, lambda m: [[m(40), d] for d in (0, 1, -1, 3)])
rows(
    FLOATS,
    gelu__out=lambda m: [args + [a] for args in unary(m)[:-1] for a in ("none", "tanh")],
    elu__out=lambda m: [[m(40), 1, 1, 1], [m(40), 0.5, 1.5, 2.0], [m.edge(), 1, 1, 1]],
    leaky_relu__out=with_number(0.01, 2),
    logit__out=lambda m: [[m(9, low=0, high=1), None], [m(9, low=-1, high=2), 0.25]],
)
row(
    "hardtanh.out", NUMBERS, lambda m: [[m(40), 0, 3], [m.last(1, 2, 3, 4), 1, 2], [m.edge(), 0, 6]]
)

# Two and three operands.
row("add.out", ALL, scaled(binary))
row("sub.out", NUMBERS, scaled(binary))
row("add.Scalar_out sub.Scalar_out rsub.Scalar_out", NUMBERS, scaled(with_number(3, -2, 1.5)))
row("mul.out maximum.out minimum.out logical_and.out logical_or.out logical_xor.out", ALL, binary)
row(
    "eq.Tensor_out ne.Tensor_out lt.Tensor_out le.Tensor_out gt.Tensor_out ge.Tensor_out",
    ALL,
    binary,
)
row(
    "mul.Scalar_out eq.Scalar_out ne.Scalar_out lt.Scalar_out le.Scalar_out gt.Scalar_out "
    "ge.Scalar_out",
    NUMBERS,
    with_number(2, -1, 0.5),
)
row("div.out atan2.out", ALL, divisor)
row("div.Scalar_out", NUMBERS, with_number(2, -3, 0.5))
row("div.out_mode", NUMBERS, with_mode(divisor, None, "trunc", "floor"))
row("div.Scalar_mode_out", NUMBERS, with_mode(with_number(2, -3, 0.5), None, "trunc", "floor"))
row("floor_divide.out remainder.Tensor_out fmod.Tensor_out", NUMBERS, divisor)
row("remainder.Scalar_out fmod.Scalar_out", NUMBERS, with_number(2, 3, -1.5))
row("pow.Tensor_Tensor_out", NUMBERS, lambda m: [[m(3, 40), m(40, low=0)], [m(5), m(5, low=-2)]])
row("pow.Tensor_Scalar_out", NUMBERS, with_number(0, 1, 2, 3, 5, 0.5, -1.0, -2.5))
row("pow.Scalar_out", NUMBERS, lambda m: [[2, m(9, low=0)], [1, m(9)], [0, m(9, low=0)]])
row(
    "clamp.out",
    NUMBERS,
    lambda m: [[m(40), 1, 3], [m(40), None, 2], [m(4, 1), 1, None], [m.edge(), 3, 1]],
)
row(
    "clamp.Tensor_out",
    NUMBERS,
    lambda m: [[m(3, 40), m(40), m(3, 1)], [m(9), None, m()], [m.edge(), m(1), None]],
)
row(
    "where.self_out",
    ALL,
    lambda m: [
        [m.mask(3, 40), m(3, 40), m(3, 40)],
        [m.mask(3, 1), m(5), m()],
        [m.mask(3, 700), m(700), m(3, 1)],
        [m.mask(700), m(3, 700), m()],
        [m.mask(), m(3, 40), m(3, 40)],
        [m.mask(2, 3, 4, 5), m.last(2, 3, 4, 5), m.last(2, 3, 4, 5)],
    ],
)
row(
    "masked_fill.Scalar_out",
    ALL,
    lambda m: [[m(3, 40), m.mask(3, 40), 1], [m(5), m.mask(2, 1), 0], [m(4), m.mask(4), True]],
)
row("fill.Scalar_out", ALL, with_number(1, 0, 2.5))
row("fill.Tensor_out", ALL, lambda m: [[m(3, 4), m()], [m(), m()]])
shifts = with_number(0, 1, 7, 63)
row("bitwise_and.Tensor_out bitwise_or.Tensor_out bitwise_xor.Tensor_out", INTS + BOOL, binary)
row("bitwise_and.Scalar_out bitwise_or.Scalar_out bitwise_xor.Scalar_out", INTS, with_number(6, -1))
row("bitwise_left_shift.Tensor_out bitwise_right_shift.Tensor_out", INTS, binary)
row("bitwise_left_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_Scalar_out", INTS, shifts)


# Reductions.
def reduced(*more: Any) -> Callable[[Maker], list[list[Any]]]:
    """Tensors with lists of dims and keepdim, then `more`."""

    def make(m: Maker) -> list[list[Any]]:
        cases = [
            (m(3, 4, 5), [0], False),
            (m(3, 4, 5), [1], True),
            (m(3, 4, 5), [-1], False),
            (m(3, 4, 5), [0, 2], True),
            (m(3, 4, 5), [], False),
            (m(2, 3000), [1], False),
            (m(300, 70), [0], False),
            (m.last(2, 3, 4, 5), [1], True),
            (m.last(2, 3, 4, 5), [2, 3], False),
            (m(), [0], False),
            (m(7), [0], True),
        ]
        return [[t, dims, keep, *more] for t, dims, keep in cases]

    return make


def along_dim(*more: Any) -> Callable[[Maker], list[list[Any]]]:
    return lambda m: [[t, d[0], *k, *more] for t, d, *k in reduced()(m) if len(d) == 1]


def whole(*more: Any) -> Callable[[Maker], list[list[Any]]]:
    tensors = [(), (5,), (3, 4, 5), (3, 1000)]
    return lambda m: [[m(*s), *more] for s in tensors] + [[m.last(2, 3, 4, 5), *more]]


row("sum.IntList_out", ALL, reduced(None))
row("mean.out", FLOATS, reduced(None))
row("mean.dtype_out", FLOATS, whole(None))
row("amax.out amin.out", ALL, reduced())
row("max.unary_out min.unary_out any.all_out", ALL, whole())
row("any.out max.dim_max min.dim_min", ALL, along_dim())
row("any.dims_out", ALL, lambda m: [[m(3, 4, 5), None, False], *reduced()(m)])
row("argmax.out argmin.out", NUMBERS, lambda m: [[m(3, 4), None, False], *along_dim()(m)])
row("prod.out", ALL, lambda m: [[m(9), None], [m(3, 4), None]])
row("prod.int_out", ALL, lambda m: [[m(3, 4), 0, False, None], [m(3, 4), -1, True, None]])
row(
    "var.out",
    FLOATS,
    lambda m: [[t, d, u, k] for t, d, k in reduced()(m)[:9] for u in (True, False)],
)
row(
    "var.correction_out var_mean.correction_out",
    FLOATS,
    lambda m: [[t, d, c, k] for t, d, k in reduced()(m)[:9] for c in (None, 0, 2)],
)
row("cumsum.out", ALL, lambda m: [[t, d[0], None] for t, d, _ in reduced()(m) if len(d) == 1])
row(
    "_softmax.out _log_softmax.out",
    FLOATS,
    lambda m: [
        [m(3, 2000), 1, False],
        [m(3, 4, 5), 0, False],
        [m.last(2, 3, 4, 5), 1, False],
        [m.last(2, 3, 4, 5), -1, False],
        [m(), 0, False],
        [m(0, 3), 1, False],
    ],
)


# Normalization.
def batch_norm(m: Maker) -> list[list[Any]]:
    stats = [m(3), m(3), m(3), m(3, low=1)]
    inputs = [m(4, 3), m(2, 3, 70), m(2, 3, 4, 5), m.last(2, 3, 4, 5)]
    return [[x, *stats] for x in inputs] + [[m(4, 3), None, None, *stats[2:]]]


rows(
    FLOATS,
    native_layer_norm__out=lambda m: [
        [m(4, 3000), [3000], m(3000), m(3000), 1e-5],
        [m(2, 3, 4), [3, 4], m(3, 4), None, 1e-3],
        [m(5, 6), [6], None, None, 1e-5],
        [m.last(2, 3, 4, 5), [4, 5], None, None, 1e-5],
    ],
    native_group_norm__out=lambda m: [
        [m(2, 6, 7), m(6), m(6), 2, 6, 7, 3, 1e-5],
        [m(2, 6, 4, 5), None, None, 2, 6, 20, 2, 1e-5],
        [m.last(2, 6, 4, 5), m(6), None, 2, 6, 20, 1, 1e-5],
    ],
    _native_batch_norm_legit_no_training__out=lambda m: [[*b, 0.1, 1e-5] for b in batch_norm(m)],
    _native_batch_norm_legit__no_stats_out=lambda m: [
        [*b[:3], True, 0.1, 1e-5] for b in batch_norm(m)
    ],
)
