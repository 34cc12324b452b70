"""Core ATen for operators outside of it that `torch.export` leaves whole.

`core_table` is torch's default table, decompositions that torch has and leaves out of it, and rules
written here. An operator that the runtime has a kernel for has no rule. In rules, `self` and so on
are as in the operator's schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch._refs
from torch import Tensor
from torch._ops import OpOverload

_aten = torch.ops.aten
_RULES: dict[OpOverload, Callable[..., Any]] = {}

# Decompositions of torch's own that end in core operators.
_OF_TORCH = """
    _addmm_activation.default _batch_norm_no_update.default
    _batch_norm_with_update_functional.default _fused_dropout.default
    _native_batch_norm_legit_functional.default addmm.dtype addmv.default
    batch_norm_backward.default bitwise_and.Scalar_Tensor bitwise_left_shift.Scalar_Tensor
    bitwise_or.Scalar_Tensor bitwise_right_shift.Scalar_Tensor bitwise_xor.Scalar_Tensor
    cauchy.default copysign.Scalar dist.default exponential.default ldexp.Tensor
    linalg_vector_norm.default log_normal.default native_batch_norm.default
    new_empty_strided.default remainder.Scalar_Tensor rrelu_with_noise_backward.default
    special_zeta.other_scalar special_zeta.self_scalar tril_indices.default triu_indices.default
    upsample_bicubic2d.default upsample_trilinear3d.default
""".split()  # noqa: SIM905 (one name per line would be a page)


def core_table() -> dict[OpOverload, Callable[..., Any]]:
    """Operator -> decomposition, of all that are known by now."""
    from torch._decomp import get_decompositions

    table = dict(torch.export.default_decompositions())
    names = [name.split(".") for name in _OF_TORCH]
    wanted = [getattr(getattr(_aten, packet), overload) for packet, overload in names]
    table.update(get_decompositions(wanted))
    table.update(_RULES)
    return table


def beyond_torch() -> frozenset[OpOverload]:
    """Operators that have a decomposition here and none in torch's default table."""
    return frozenset(core_table().keys() - torch.export.default_decompositions().keys())


def _rule(*ops: OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        _RULES.update(dict.fromkeys(ops, function))
        return function

    return add


# Casts.


@_rule(_aten._to_copy.default)
def cast_complex(self: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
    """Between complex and other types, by the parts."""
    if dtype is None or dtype == self.dtype or not (dtype.is_complex or self.is_complex()):
        return NotImplemented
    if not dtype.is_complex:
        return torch.view_as_real(self).select(-1, 0).to(dtype)
    real, imaginary = (self, None)
    if self.is_complex():
        parts = torch.view_as_real(self)
        real, imaginary = parts.select(-1, 0), parts.select(-1, 1)
    real = real.to(dtype.to_real())
    imaginary = torch.zeros_like(real) if imaginary is None else imaginary.to(dtype.to_real())
    return torch.complex(real, imaginary)


# Python's shifts.


@_rule(_aten.__lshift__.Scalar, _aten.__lshift__.Tensor)
def shift_left(self: Tensor, other: Any) -> Tensor:
    if self.is_floating_point():
        return self * torch.pow(2.0, other) if isinstance(other, Tensor) else self * 2.0**other
    return torch.bitwise_left_shift(self, other)


@_rule(_aten.__rshift__.Scalar, _aten.__rshift__.Tensor)
def shift_right(self: Tensor, other: Any) -> Tensor:
    if self.is_floating_point():
        return self / torch.pow(2.0, other) if isinstance(other, Tensor) else self / 2.0**other
    return torch.bitwise_right_shift(self, other)


# Products.


@_rule(_aten.addbmm.default)
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if not self.is_floating_point():
        beta, alpha = int(beta), int(alpha)
    product = torch.bmm(batch1, batch2).sum(0, dtype=batch1.dtype)
    if alpha != 1:
        product = product * alpha
    if beta == 0:  # whatever `self` holds
        return product
    return product + (self if beta == 1 else self * beta)


@_rule(_aten._trilinear.default)
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Tensor:
    for dims, place in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for dim in sorted(dims):
            i1, i2, i3 = (t.unsqueeze(dim) if i == place else t for i, t in enumerate((i1, i2, i3)))
    product = i1 * i2 * i3
    return product.sum(sumdim, dtype=product.dtype) if sumdim else product


@_rule(_aten.conv_tbc.default)
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    result = torch.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)


# Order statistics: by sorting, which puts NaN last.


def _sorted(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """(values, their places), sorted stably along `dim`; of a number, as of one element."""
    if self.dim() == 0:
        self = self.reshape(1)
    return torch.sort(self, dim)


def _picked(
    self: Tensor, values: Tensor, places: Tensor, at: int, dim: int, keepdim: bool
) -> tuple[Tensor, Tensor]:
    """Element `at` of `values` and `places` along `dim`, in the shape of a reduction of `self`."""
    keep = keepdim and self.dim() > 0
    found = [t.narrow(dim, at, 1) if keep else t.select(dim, at) for t in (values, places)]
    return found[0], found[1]


@_rule(_aten.sort.stable)
def stable_sort(
    self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """The runtime's sort is stable."""
    return torch.sort(self, dim, descending)


@_rule(_aten.kthvalue.default)
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _picked(self, *_sorted(self, dim), k - 1, dim, keepdim)


@_rule(_aten.median.dim)
def median_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = _sorted(self, dim)
    n = values.shape[dim]
    middle = _picked(self, values, places, (n - 1) // 2, dim, keepdim)
    if not self.is_floating_point():
        return middle
    found, place = middle
    last = _picked(self, values, places, n - 1, dim, keepdim)[0]
    source = self.reshape(1) if self.dim() == 0 else self
    first_nan = torch.argmax(torch.isnan(source).int(), dim, keepdim and self.dim() > 0)
    is_nan = torch.isnan(last)
    return torch.where(is_nan, last, found), torch.where(is_nan, first_nan, place)


@_rule(_aten.median.default)
def median(self: Tensor) -> Tensor:
    if self.numel() == 0:
        return torch.full((), _nothing(self.dtype), dtype=self.dtype, device=self.device)
    return median_dim(self.reshape(-1), 0)[0]


@_rule(_aten.nanmedian.dim)
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.is_floating_point():
        return median_dim(self, dim, keepdim)
    values, places = _sorted(self, dim)
    n = (~torch.isnan(values)).sum(dim, keepdim=True)
    at = torch.clamp_min((n - 1) // 2, 0)
    found = [t.gather(dim, at) for t in (values, places)]
    if not (keepdim and self.dim() > 0):
        found = [t.squeeze(dim) for t in found]
    return found[0], found[1]


@_rule(_aten.nanmedian.default)
def nanmedian(self: Tensor) -> Tensor:
    if self.numel() == 0:
        return torch.full((), _nothing(self.dtype), dtype=self.dtype, device=self.device)
    return nanmedian_dim(self.reshape(-1), 0)[0]


def _nothing(dtype: torch.dtype) -> float | int:
    """The median of no elements."""
    if dtype.is_floating_point:
        return math.nan
    return torch.iinfo(dtype).min


@_rule(_aten.mode.default)
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent element, of these the smallest, and the place of its last occurrence."""
    values, places = _sorted(self, dim)
    n = values.shape[dim]
    at = torch.arange(n, device=self.device).reshape([n] + [1] * (-dim - 1 if dim < 0 else 0))
    if dim >= 0:
        at = at.reshape([n] + [1] * (values.dim() - 1 - dim))
    before = values.narrow(dim, 0, n - 1)
    starts = torch.ne(values.narrow(dim, 1, n - 1), before)
    starts = torch.cat([torch.ones_like(values.narrow(dim, 0, 1), dtype=torch.bool), starts], dim)
    start = torch.cummax(torch.where(starts, at, 0), dim)[0]
    best = torch.argmax(at - start, dim, keepdim=True)
    found = [t.gather(dim, best) for t in (values, places)]
    if not (keepdim and self.dim() > 0):
        found = [t.squeeze(dim) for t in found]
    return found[0], found[1]


@_rule(_aten.histc.default)
def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    x = self.reshape(-1)
    if x.numel() == 0:
        return torch.zeros(bins, dtype=x.dtype, device=x.device)
    if x.element_size() < 4:  # half a unit there is a bin
        return histc(x.to(torch.float32), bins, min, max).to(x.dtype)
    low: Any = min
    high: Any = max
    if low == high:
        low, high = x.amin(), x.amax()
        same = torch.eq(low, high)
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = torch.floor((x - low) * bins / (high - low))
    place = torch.where(inside, torch.clamp_max(place, bins - 1), 0.0).to(torch.int64)
    return torch.zeros(bins, dtype=x.dtype, device=x.device).scatter_add(
        0, place, inside.to(x.dtype)
    )


# Distinct elements and matrices.


@_rule(_aten.unique_consecutive.default)
def unique_consecutive(
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    if dim is not None and dim < 0:
        raise ValueError(
            f"unique_consecutive: dim is {dim}; torch.export mistakes the shape of the result for "
            f"dims counted from the end, write {dim + self.dim()}"
        )
    return NotImplemented


@_rule(_aten.take.default)
def take(self: Tensor, index: Tensor) -> Any:
    return _aten.index.Tensor(self.reshape(-1), [index])


@_rule(_aten.cholesky.default)
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    return torch.linalg.cholesky_ex(self, upper=upper, check_errors=True)[0]


@_rule(_aten.cholesky_solve.default)
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    first, second = (input2.mT, input2) if upper else (input2, input2.mT)
    half = torch.linalg.solve_triangular(first, self, upper=False)
    return torch.linalg.solve_triangular(second, half, upper=True)


@_rule(_aten.cholesky_inverse.default)
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    identity = torch.eye(self.shape[-1], dtype=self.dtype, device=self.device)
    return cholesky_solve(identity.expand(self.shape), self, upper)


@_rule(_aten.triangular_solve.default)
def triangular_solve(
    self: Tensor,
    A: Tensor,  # noqa: N803 (the schema's)
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    solved = torch.linalg.solve_triangular(
        A.mT if transpose else A, self, upper=upper != transpose, unitriangular=unitriangular
    )
    return solved, A.expand(*solved.shape[:-2], *A.shape[-2:]).clone()


@_rule(_aten.linalg_pinv.atol_rtol_tensor)
def pinv(
    self: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    """Singular values up to max(atol, rtol * the largest) count as zero."""
    if 0 in self.shape[-2:]:
        return self.mT.clone()
    u, s, vh = torch.linalg.svd(self, full_matrices=False)
    if rtol is None:
        eps = torch.finfo(self.dtype).eps * max(self.shape[-2:])
        bound = s[..., :1] * (eps if atol is None else torch.where(atol > 0, 0.0, eps)[..., None])
    else:
        bound = s[..., :1] * rtol[..., None]
    if atol is not None:
        bound = torch.maximum(bound, atol[..., None])
    inverse = torch.where(s > bound, 1 / s, 0.0)
    return vh.mT @ (inverse[..., None] * u.mT)


# Scattering.


def _along(index: Tensor, like: Tensor, dim: int) -> Tensor:
    """`index`, which numbers slices along `dim`, for every element of `like`."""
    shape = [1] * like.dim()
    if like.dim():
        shape[dim] = index.numel()
    return index.reshape(shape).expand(like.shape)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@_rule(_aten.scatter.reduce, _aten.scatter.value_reduce)
def scatter_reducing(self: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> Tensor:
    if not isinstance(src, Tensor):
        src = torch.full(index.shape, src, dtype=self.dtype, device=self.device)
    if reduce == "add":
        return torch.scatter_add(self, dim, index, src)
    return torch.scatter_reduce(self, dim, index, src, _REDUCTIONS[reduce])


@_rule(_aten.index_reduce.default)
def index_reduce(
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    along = _along(index.to(torch.int64), source, dim)
    return torch.scatter_reduce(self, dim, along, source, reduce, include_self=include_self)


@_rule(_aten.put.default)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = self.reshape(-1)
    places: Any = [index.reshape(-1).to(torch.int64)]
    return torch.index_put(flat, places, source.reshape(-1), accumulate).reshape(self.shape)


@_rule(_aten.diagonal_scatter.default)
def diagonal_scatter(
    self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    matrices = torch.movedim(self, (dim1, dim2), (-2, -1))
    columns = matrices.shape[-1]
    flat = matrices.reshape(*matrices.shape[:-2], matrices.shape[-2] * columns)
    at = torch.arange(src.shape[-1], device=self.device) * (columns + 1)
    at = at + (offset if offset >= 0 else -offset * columns)
    flat = torch.scatter(flat, -1, at.expand(src.shape), src)
    return torch.movedim(flat.reshape(matrices.shape), (-2, -1), (dim1, dim2))


@_rule(_aten.as_strided_scatter.default)
def as_strided_scatter(
    self: Tensor,
    src: Tensor,
    size: list[int],
    stride: list[int],
    storage_offset: int | None = None,
) -> Tensor:
    at = torch.full((), storage_offset or 0, dtype=torch.int64, device=self.device)
    for n, step in zip(size, stride, strict=True):
        at = at.unsqueeze(-1) + torch.arange(n, device=self.device) * step
    flat = torch.scatter(self.reshape(-1), 0, at.reshape(-1), src.reshape(-1))
    return flat.reshape(self.shape)


# Random numbers.


@_rule(_aten.uniform.default)
def uniform(
    self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None, **named: Any
) -> Tensor:
    low = named.get("from", from_)  # the schema's name, which Python keeps for itself
    return torch.rand_like(self) * (to - low) + low


@_rule(_aten.geometric.default)
def geometric(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    u = 1 - torch.rand_like(self, dtype=_float_of(self))  # in (0, 1]
    return torch.clamp_min(torch.ceil(torch.log(u) / math.log1p(-p)), 1).to(self.dtype)


@_rule(_aten.normal.Tensor_float, _aten.normal.Tensor_Tensor)
def normal_around(mean: Tensor, std: Any = 1, *, generator: Any = None) -> Tensor:
    shape = torch.broadcast_shapes(mean.shape, std.shape) if isinstance(std, Tensor) else mean.shape
    return torch.randn(shape, dtype=mean.dtype, device=mean.device) * std + mean


@_rule(_aten.normal.float_Tensor)
def normal_spread(mean: float, std: Tensor, *, generator: Any = None) -> Tensor:
    return torch.randn_like(std) * std + mean


@_rule(_aten.normal.float_float)
def normal_of_size(
    mean: float, std: float, size: list[int], *, generator: Any = None, **options: Any
) -> Tensor:
    return torch.randn(size, **options) * std + mean


@_rule(_aten.rrelu_with_noise_functional.default)
def rrelu(
    self: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> tuple[Tensor, Tensor]:
    if training:
        slope = torch.rand_like(self) * (upper - lower) + lower
        noise = torch.where(self <= 0, slope, 1.0)
        return self * noise, noise
    return torch.nn.functional.leaky_relu(self, (lower + upper) / 2), noise


@_rule(_aten.alpha_dropout.default)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropped elements get the value that SELU saturates at; mean and variance stay."""
    if not train or p == 0:
        return input.clone()
    if p == 1:
        return torch.zeros_like(input)
    saturated = 1.7580993408473766
    scale = 1 / math.sqrt((saturated * saturated * p + 1) * (1 - p))
    kept = torch.ge(torch.rand_like(input), p)
    shift = saturated * scale * p
    return torch.where(kept, input, -saturated) * scale + shift


@_rule(_aten.bernoulli.p)
def bernoulli_p(self: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    return torch.lt(torch.rand_like(self, dtype=_float_of(self)), p).to(self.dtype)


@_rule(_aten.bernoulli.Tensor)
def bernoulli_tensor(self: Tensor, p: Tensor, *, generator: Any = None) -> Tensor:
    return torch.lt(torch.rand_like(self, dtype=p.dtype), p).to(self.dtype)


@_rule(_aten.normal_functional.default)
def normal_functional(
    self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None
) -> Tensor:
    return torch.randn_like(self) * std + mean


@_rule(_aten.multinomial.default)
def multinomial(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """With replacement by inverting the running total; without, the largest of p / Exponential(1)
    are a draw (an exponential race)."""
    if replacement:
        total = torch.cumsum(self.to(torch.float64), -1)
        shape = [*self.shape[:-1], num_samples]
        at = torch.rand(shape, dtype=total.dtype, device=self.device) * total[..., -1:]
        # The last class with a part of its own, where rounding lands on the total itself.
        return torch.minimum(
            torch.searchsorted(total, at, right=True),
            torch.searchsorted(total, total[..., -1:]),
        )
    p = self.to(_float_of(self))
    # In (0, 1]: a zero would make every class infinitely likely.
    race = -torch.log(1 - torch.rand_like(p))
    if num_samples == 1:
        return torch.argmax(p / race, -1, keepdim=True)
    return torch.topk(p / race, num_samples)[1]


@_rule(_aten.randint_like.default)
def randint_like(self: Tensor, high: int, **options: Any) -> Tensor:
    return randint_like_low(self, 0, high, **options)


@_rule(_aten.randint_like.low_dtype)
def randint_like_low(self: Tensor, low: int, high: int, **options: Any) -> Tensor:
    dtype = options.get("dtype") or self.dtype
    return torch.randint(low, high, self.shape, dtype=dtype, device=self.device)


def _float_of(t: Tensor) -> torch.dtype:
    return t.dtype if t.is_floating_point() else torch.get_default_dtype()


# Sequences.


@_rule(_aten.empty_permuted.default)
def empty_permuted(size: list[int], physical_layout: list[int], **options: Any) -> Tensor:
    order = [physical_layout.index(d) for d in range(len(size))]
    return torch.empty([size[d] for d in physical_layout], **options).permute(order)


@_rule(_aten.polar.default)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return torch.complex(abs * torch.cos(angle), abs * torch.sin(angle))


@_rule(
    _aten.linspace.default,
    _aten.linspace.Tensor_Tensor,
    _aten.linspace.Tensor_Scalar,
    _aten.linspace.Scalar_Tensor,
)
def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """Between integers, from and to the integers that the ends are cast to."""
    dtype = options.get("dtype")
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return torch._refs.linspace(start, end, steps, **options)
    ends: list[Any] = [
        t.to(dtype).to(torch.float64) if isinstance(t, Tensor) else int(t) for t in (start, end)
    ]
    options["dtype"] = torch.float64
    return torch._refs.linspace(ends[0], ends[1], steps=steps, **options).to(dtype)  # type: ignore[call-overload]


@_rule(_aten.range.default)
def range_(start: Any, end: Any, **options: Any) -> Tensor:
    return range_step(start, end, 1, **options)


@_rule(_aten.range.step)
def range_step(start: Any, end: Any, step: Any = 1, **options: Any) -> Tensor:
    dtype = options.get("dtype") or torch.get_default_dtype()
    n = math.floor((end - start) / step) + 1
    return (torch.arange(n, dtype=torch.float64) * step + start).to(dtype)


@_rule(_aten.nonzero_static.default)
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """A place for each of the first `size` nonzeros; the others go to one place more."""
    flat = torch.ne(self.reshape(-1), 0)
    rank = torch.cumsum(flat, 0) - 1
    slot = torch.where(flat & (rank < size), rank, size)
    at = torch.arange(flat.shape[0], device=self.device)
    found = torch.full((size + 1,), -1, dtype=torch.int64, device=self.device)
    found = torch.scatter(found, 0, slot, at)[:size]
    columns = []
    for extent in reversed(self.shape):
        column = torch.remainder(found, max(extent, 1))
        columns.append(torch.where(found >= 0, column, fill_value))
        found = torch.div(found, max(extent, 1), rounding_mode="floor")
    if not columns:
        return torch.empty((size, 0), dtype=torch.int64, device=self.device)
    return torch.stack(columns[::-1], 1)
