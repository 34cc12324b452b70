"""Arguments for gradients, transforms, resampling, bags, random numbers, dim orders."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.samples import ALL, FLOATS, NUMBERS, Maker, row, rows

COMPLEX = (torch.complex64, torch.complex128)
aten = torch.ops.aten


def pooled(m: Maker, *, adaptive: bool) -> list[list[Any]]:
    made = []
    for x in [m(2, 3, 7, 6), m(3, 7, 6), m.last(2, 3, 7, 6)]:
        if adaptive:
            for size in ([3, 2], [1, 1], [9, 7]):
                y = aten._adaptive_avg_pool2d(x.float(), size)
                made.append([m(*y.shape), x])
            continue
        for padded, ceil, divisor in [(True, False, None), (False, True, None), (True, True, 5)]:
            how = [[3, 2], [2, 1], [1, 1], ceil, padded, divisor]
            y = aten.avg_pool2d(x.float(), *how)
            made.append([m(*y.shape), x, *how])
    return made


def layer_norm_gradients(m: Maker) -> list[list[Any]]:
    made = []
    for x, n, weight in [(m(4, 1500), 1, m(1500)), (m(2, 3, 4), 2, m(3, 4))]:
        shape = list(x.shape[-n:])
        _, mean, rstd = aten.native_layer_norm(x.float(), shape, None, None, 1e-5)
        stats = [mean.to(m.dtype), rstd.to(m.dtype)]
        made.append([m(*x.shape), x, shape, *stats, weight, m(*shape), [True] * 3])
    return made


def group_norm_gradients(m: Maker) -> list[list[Any]]:
    made = []
    for x, groups, weight in [(m(2, 6, 7), 3, m(6)), (m(2, 6, 4, 5), 2, m(6))]:
        n, c, inner = x.shape[0], x.shape[1], x[0, 0].numel()
        _, mean, rstd = aten.native_group_norm(x.float(), None, None, n, c, inner, groups, 1e-5)
        stats = [mean.to(m.dtype), rstd.to(m.dtype)]
        made.append([m(*x.shape), x, *stats, weight, n, c, inner, groups, [True] * 3])
    return made


def bags(m: Maker) -> list[list[Any]]:
    table, indices = m(7, 300), m.long(9, high=7)
    offsets = torch.tensor([0, 0, 4, 9])
    made = []
    for mode in (0, 1, 2):
        weights = m(9) if mode == 0 else None
        made += [
            [table, indices, offsets[:3], False, mode, False, weights, False, -1],
            [table, indices, offsets, False, mode, False, None, True, -1],
            [table, indices.int(), offsets[:3].int(), False, mode, False, None, False, 2],
        ]
    return made


def folded(m: Maker) -> list[list[Any]]:
    made = []
    for lead in [(2,), ()]:
        for dilation, padding, stride in [([1, 1], [0, 0], [1, 1]), ([2, 1], [1, 1], [2, 3])]:
            size = [9, 8]
            count = 1
            for d, kernel in enumerate([3, 2]):
                reach = size[d] + 2 * padding[d] - dilation[d] * (kernel - 1) - 1
                count *= reach // stride[d] + 1
            made.append([m(*lead, 12, count), size, [3, 2], dilation, padding, stride])
    return made


def resized(*more: Any) -> Any:
    def made(m: Maker) -> list[list[Any]]:
        images = [m(2, 3, 5, 6, low=0), m.last(2, 3, 5, 6, low=0)]
        sizes = [([10, 12], None), ([3, 4], None), ([7, 1], None), (None, [1.5, 2.0])]
        return [[x, size, *more, scales] for x in images for size, scales in sizes]

    return made


def antialiased(m: Maker) -> list[list[Any]]:
    """Wide windows, rows longer than what is summed together, and either axis first, too."""
    images = [m(2, 3, 9, 8, low=0, high=60), m.last(1, 2, 9, 8, low=0, high=60)]
    sizes = ([4, 3], [12, 20], [9, 5])
    wide = [(m(1, 2, 9, 150, low=0, high=60), size) for size in ([2, 7], [40, 70])]
    wide.append((m.last(3, 2, 31, 70, low=0, high=60), [3, 70]))
    small = [[x, s, a, None, None] for x in images for s in sizes for a in (False, True)]
    return small + [[x, size, False, None, None] for x, size in wide]


def grids(m: Maker) -> list[list[Any]]:
    """Positions also outside the image."""
    x, grid = m(2, 3, 5, 6), m(2, 4, 7, 2, low=-1, high=1) * 1.5
    modes = [(i, p, a) for i in range(3) for p in range(3) for a in (False, True)]
    return [[x, grid, *mode] for mode in modes] + [[m.last(2, 3, 5, 6), grid, 0, 0, False]]


def volumes(m: Maker) -> list[list[Any]]:
    x, grid = m(1, 2, 3, 4, 5), m(1, 2, 3, 4, 3, low=-1, high=1) * 1.25
    return [[x, grid, i, p, a] for i in range(2) for p in range(3) for a in (False, True)]


rows(
    FLOATS,
    _adaptive_avg_pool2d_backward__out=lambda m: pooled(m, adaptive=True),
    avg_pool2d_backward__grad_input=lambda m: pooled(m, adaptive=False),
    embedding_dense_backward__out=lambda m: [
        [m(2, 4, 5), m.long(2, 4, high=6), 6, padding, scaled]
        for padding in (-1, 2)
        for scaled in (False, True)
    ],
    native_layer_norm_backward__out=layer_norm_gradients,
    native_group_norm_backward__out=group_norm_gradients,
    _embedding_bag__out=bags,
    _embedding_bag_forward_only__out=bags,
    adaptive_max_pool2d__out=lambda m: [[m(2, 3, 7, 6), [3, 2]], [m.last(2, 3, 7, 6), [4, 6]]],
    adaptive_max_pool3d__out=lambda m: [[m(2, 3, 4, 5, 6), [2, 3, 4]]],
    col2im__out=folded,
    grid_sampler_2d__out=grids,
    grid_sampler_3d__out=volumes,
    rand__out=lambda m: [[[3, 4]], [[]]],
    randn__out=lambda m: [[[3, 4]], [[]]],
    rand_like__out=lambda m: [[m(3, 4), None]],
    randn_like__out=lambda m: [[m(3, 4), None]],
    native_dropout__out=lambda m: [[m(40), 0.5, True], [m(3, 4), 0.5, False]],
    _cdist_forward__out=lambda m: [
        [m(3, 70), m(4, 70), 2.0, None],
        [m.last(2, 3, 4, 5), m.last(2, 3, 6, 5), 2.0, None],
        [m(0, 3), m(4, 3), 2.0, None],
        [m(3, 0), m(2, 0), 1.0, None],
        *([m(2, 1, 3, 5), m(4, 2, 5), p, None] for p in (0.0, 1.0, 2.0, 3.0, float("inf"))),
    ],
    _pdist_forward__out=lambda m: [[m(5, 7), p] for p in (0.0, 1.0, 2.0, 1.5, float("inf"))],
)
row("_upsample_bilinear2d_aa.out", (*FLOATS, torch.uint8), antialiased)
row(
    "upsample_bilinear2d.vec_out",
    (*FLOATS, torch.uint8),
    lambda m: [*resized(False)(m), *resized(True)(m)],
)
row("upsample_nearest2d.vec_out", (*FLOATS, torch.uint8), resized())
rows(
    NUMBERS,
    randint__out=lambda m: [[100, [3, 4]], [1, [2]]],
    randint__low_out=lambda m: [[3, 100, [3, 4]]],
    randperm__out=lambda m: [[20], [0]],
    empty__out=lambda m: [[[2, 3], None]],
    empty_strided__out=lambda m: [[[2, 3], [3, 1]]],
    scatter_reduce__two_out=lambda m: [
        [m(4, 5), d, m.long(3, 4, high=4), m(3, 4), how, include]
        for d in (0, 1)
        for how in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    ],
    cumprod__out=lambda m: [[m(3, 4), 0, None], [m(5, 3), -1, None], [m(), 0, None]],
    cummax__out=lambda m: [[m(3, 9), 1], [m.edge(), 0], [m(), 0]],
    cummin__out=lambda m: [[m(3, 9), 0], [m.edge(), 0], [m(), 0]],
    bucketize__Tensor_out=lambda m: [
        [m(3, 9), m(7).sort().values, int32, right]
        for int32 in (False, True)
        for right in (False, True)
    ],
    searchsorted__Tensor_out=lambda m: [
        [m(3, 7).sort(-1).values, m(3, 5), False, right, None, None] for right in (False, True)
    ],
)
rows(
    ALL,
    **{
        "dim_order_ops::_clone_dim_order__out": lambda m: [
            [m(2, 3, 4, 5), False, [0, 1, 2, 3]],
            [m.last(2, 3, 4, 5), False, [0, 2, 3, 1]],
        ],
        "dim_order_ops::_to_dim_order_copy__out": lambda m: [
            [m(2, 3, 4, 5), False, [0, 2, 3, 1]],
            [m.last(2, 3, 4, 5), False, [0, 1, 2, 3]],
            [m(3), False, None],
        ],
        "dim_order_ops::_empty_dim_order__out": lambda m: [
            [[2, 3], [0, 1]],
            [[1, 2, 3, 4], [0, 2, 3, 1]],
        ],
    },
)


def transformed(m: Maker) -> list[tuple[torch.Tensor, list[int], int]]:
    """Lengths of one factor, of small ones and of a large prime; one dim and several."""
    real = m.dtype if m.dtype.is_floating_point else torch.float64
    shapes = [(1,), (8,), (3, 12), (2, 97), (4, 5, 6)]
    made = []
    for i, shape in enumerate(shapes):
        x = Maker(real)(*shape)
        for dims in ([len(shape) - 1], list(range(len(shape))), [0]):
            made.append((x, dims, i % 3))
    return made


def as_complex(m: Maker, x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x.double(), x.flip(-1).double() / 2).to(m.dtype)


rows(
    (torch.float32, torch.float64),
    _fft_r2c__out=lambda m: [
        [x, d, n, side] for x, d, n in transformed(m) for side in (True, False)
    ],
    complex__out=lambda m: [[m(3, 4), m(4)]],
    view_as_complex_copy__out=lambda m: [[m(3, 4, 2)], [m(2)]],
)
rows(
    COMPLEX,
    _conj_copy__out=lambda m: [[as_complex(m, Maker(torch.float64)(3, 4))]],
    _fft_c2c__out=lambda m: [
        [as_complex(m, x), d, n, forward] for x, d, n in transformed(m) for forward in (True, False)
    ],
    _fft_c2r__out=lambda m: [
        [as_complex(m, x), d, n, 2 * x.shape[d[-1]] - 1 - i % 2]
        for i, (x, d, n) in enumerate(transformed(m))
        if 2 * x.shape[d[-1]] - 2 > 0
    ],
)
