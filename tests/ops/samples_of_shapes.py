"""Arguments for the operators that move elements, look them up, or combine them over space."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.samples import ALL, FLOATS, NUMBERS, Maker, row, rows

KEEP, PLAIN = torch.preserve_format, torch.contiguous_format


def spatial(*args: Any, c: int = 3) -> Any:
    """An image with and without a batch, in both layouts."""
    return lambda m: [
        [m(2, c, 7, 6), *args],
        [m(c, 7, 6), *args],
        [m.last(2, c, 7, 6), *args],
    ]


# Copies, views, joins.
row(
    "alias_copy.out detach_copy.out lift_fresh_copy.out",
    ALL,
    lambda m: [[m()], [m(0, 3)], [m(3, 4)]],
)
rows(
    ALL,
    _to_copy__out=lambda m: [[m(2, 3), False, PLAIN], [m.last(2, 3, 4, 5), False, KEEP]],
    clone__out=lambda m: [[m(2, 3), PLAIN], [m.last(2, 3, 4, 5), KEEP]],
    copy__out=lambda m: [[m(2, 3), m(3), False], [m(2, 3), m.long(2, 3, high=2), False]],
    t_copy__out=lambda m: [[m(3, 4)], [m(5)]],
    permute_copy__out=lambda m: [[m(2, 3, 4), [2, 0, 1]], [m(2, 3), [-1, 0]], [m(), []]],
    transpose_copy__int_out=lambda m: [[m(2, 3, 4), 0, -1], [m(2, 3), 1, 1]],
    view_copy__out=lambda m: [[m(2, 6), [3, -1]], [m(1), []], [m(0, 4), [0, 2, 2]]],
    expand_copy__out=lambda m: [[m(3, 1), [2, 3, 4], False], [m(4), [-1], False]],
    squeeze_copy__dim_out=lambda m: [[m(2, 1, 3), 1], [m(2, 1, 3), 0], [m(), -1]],
    squeeze_copy__dims_out=lambda m: [[m(1, 2, 1, 3), [0, 2]], [m(1, 2), [-1]]],
    unsqueeze_copy__out=lambda m: [[m(2, 3), 0], [m(2, 3), -1], [m(), 0]],
    select_copy__int_out=lambda m: [[m(3, 4, 5), 1, -1], [m(3), 0, 2]],
    slice_copy__Tensor_out=lambda m: [
        [m(9, 4), 0, 1, 8, 3],
        [m(9, 4), -1, None, None, 1],
        [m(9), 0, -5, 100, 2],
        [m(9), 0, 5, 2, 1],
    ],
    narrow_copy__out=lambda m: [[m(5, 4), 0, 1, 3], [m(5, 4), 1, -2, 2]],
    diagonal_copy__out=lambda m: [[m(3, 4), 0, 0, 1], [m(2, 3, 4), -1, 2, 1], [m(3, 3), 9, 0, 1]],
    as_strided_copy__out=lambda m: [[m(12), [2, 3], [1, 2], 1], [m(6), [4], [0], None]],
    unfold_copy__out=lambda m: [[m(7), 0, 3, 2], [m(3, 8), 1, 2, 3]],
    cat__out=lambda m: [
        [[m(2, 3), m(1, 3), m(4, 3)], 0],
        [[m(2, 3, 1), m(2, 3, 4)], -1],
        [[m(0), m(2, 3)], 0],
        [[m.last(1, 2, 3, 4), m.last(1, 5, 3, 4)], 1],
    ],
    stack__out=lambda m: [[[m(2, 3), m(2, 3)], 0], [[m(2, 3), m(2, 3), m(2, 3)], -1]],
    repeat__out=lambda m: [[m(2, 3), [1, 2]], [m(3), [2, 2, 2]], [m(3), [0]]],
    flip__out=lambda m: [[m(2, 3, 4), [0, 2]], [m(5), [-1]], [m(3), []]],
    roll__out=lambda m: [[m(3, 4), [1, -2], [0, 1]], [m(3, 4), [5], []]],
    tril__out=lambda m: [[m(4, 5), 0], [m(2, 3, 3), 1], [m(4, 4), -2]],
    triu__out=lambda m: [[m(4, 5), 0], [m(2, 3, 3), 1], [m(4, 4), -2]],
    split_copy__Tensor_out=lambda m: [[m(7, 2), 3, 0], [m(2, 6), 2, -1]],
    split_with_sizes_copy__out=lambda m: [[m(7, 2), [1, 4, 2], 0], [m(2, 3), [0, 3], 1]],
    unbind_copy__int_out=lambda m: [[m(3, 2), 0], [m(2, 3), -1]],
    constant_pad_nd__out=lambda m: [[m(2, 3), [1, 2], 1], [m(2, 3), [1, -1, 0, 2], 0]],
    pixel_shuffle__out=lambda m: [[m(2, 8, 3, 2), 2]],
    pixel_unshuffle__out=lambda m: [[m(2, 2, 6, 4), 2]],
)
row("view_as_real_copy.out", (torch.complex64, torch.complex128), lambda m: [[m(3).to(m.dtype)]])
rows(
    NUMBERS,
    reflection_pad1d__out=lambda m: [[m(2, 3, 5), [2, 4]], [m(3, 5), [0, 1]]],
    reflection_pad2d__out=lambda m: [[m(2, 3, 5, 6), [2, 4, 1, 0]]],
    reflection_pad3d__out=lambda m: [[m(1, 2, 3, 4, 5), [1, 2, 0, 3, 2, 1]]],
    replication_pad1d__out=lambda m: [[m(2, 3, 5), [2, 7]]],
    replication_pad2d__out=lambda m: [[m(2, 3, 5, 6), [2, 7, 1, 0]]],
    replication_pad3d__out=lambda m: [[m(1, 2, 3, 4, 5), [1, 2, 0, 3, 2, 9]]],
)

# Creation.
rows(
    NUMBERS,
    full__out=lambda m: [[[2, 3], 3], [[], 1], [[0], 2]],
    full_like__out=lambda m: [[m(2, 3), 3, None], [m.last(1, 2, 3, 4), 1, KEEP]],
    ones__out=lambda m: [[[2, 3]], [[]]],
    zeros__out=lambda m: [[[2, 3]], [[]]],
    scalar_tensor__out=lambda m: [[3], [0]],
    arange__out=lambda m: [[5], [0]],
    arange__start_out=lambda m: [[2, 9, 3], [5, -1, -2], [0, 1, 1]],
)

# Indexing.
rows(
    ALL,
    index_select__out=lambda m: [[m(5, 3), 0, m.long(4, high=5)], [m(2, 5), -1, m.long(3, high=5)]],
    gather__out=lambda m: [
        [m(4, 5), 1, m.long(4, 2, high=5), False],
        [m(4, 5), 0, m.long(3, 5, high=4), False],
    ],
    scatter__src_out=lambda m: [[m(4, 5), 0, torch.tensor([[0, 3, 1], [2, 1, 0]]), m(2, 3)]],
    scatter__value_out=lambda m: [[m(4, 5), 1, m.long(4, 2, high=5), 1]],
    select_scatter__out=lambda m: [[m(4, 5), m(5), 0, 2], [m(4, 5), m(4), -1, -1]],
    slice_scatter__out=lambda m: [[m(6, 5), m(2, 5), 0, 1, 5, 2], [m(5), m(5), 0, None, None, 1]],
    masked_scatter__out=lambda m: [[m(3, 4), m.mask(3, 4), m(12)], [m(3, 4), m.mask(4), m(12)]],
    masked_select__out=lambda m: [[m(3, 4), m.mask(3, 4)], [m(3, 4), m.mask(4)]],
    nonzero__out=lambda m: [[m(3, 4)], [m(5)]],
    index__Tensor_out=lambda m: [  # a tuple is a list of optional tensors
        [m(4, 5), (m.long(3, high=4), m.long(3, high=5))],
        [m(4, 5, 6), (None, m.long(2, 3, high=5))],
        [m(4, 5, 6), (m.long(3, high=4), None, m.long(3, high=6))],
        [m(4, 5), (m.mask(4), None)],
    ],
    index_put__out=lambda m: [
        [m(4, 5), (torch.tensor([0, 3]),), m(2, 5), False],
        [m(4, 5), (None, torch.tensor([1, 4])), m(1), False],
    ],
    embedding__out=lambda m: [[m(6, 3), m.long(2, 4, high=6), -1, False, False]],
)
row("scatter_add.out", NUMBERS, lambda m: [[m(4, 5), 1, m.long(4, 6, high=5), m(4, 6)]])
row(
    "repeat_interleave.Tensor_out",
    (torch.int32, torch.int64),
    lambda m: [[m(4, low=0), None], [m(0), None]],
)
rows(
    NUMBERS,
    topk__values=lambda m: [
        [distinct(m, 30), 4, 0, True, True],
        [distinct(m, 2, 9), 3, -1, False, True],
    ],
    sort__values=lambda m: [[distinct(m, 30), 0, False], [distinct(m, 4, 7), 0, True]],
    kthvalue__values=lambda m: [
        [distinct(m, 30), 4, 0, True],
        [distinct(m, 2, 9), 9, -1, False],
        [distinct(m, 11, 8), 1, 0, False],
    ],
    median__dim_values=lambda m: [
        [distinct(m, 30), 0, True],
        [distinct(m, 2, 9), -1, False],
        [distinct(m, 11, 8), 0, True],
    ],
)


def distinct(m: Maker, *shape: int) -> torch.Tensor:
    """No two elements alike: among equals any order is right."""
    n = torch.Size(shape).numel()
    return torch.randperm(n, generator=m.random).reshape(shape).to(m.dtype)


# Sums of products.
def convolutions(m: Maker) -> list[list[Any]]:
    plain, none = [1, 1], [0, 0]
    return [
        [m(2, 3, 7, 6), m(4, 3, 3, 2), m(4), plain, none, plain, False, none, 1],
        [m(2, 4, 7, 6), m(6, 2, 3, 3), None, [2, 1], [1, 2], plain, False, none, 2],
        [m.last(1, 4, 7, 6), m.last(4, 4, 3, 3), m(4), plain, [1, 1], [2, 2], False, none, 1],
        [m(1, 4, 5, 5), m(4, 1, 3, 3), m(4), plain, [1, 1], plain, False, none, 4],
        [m(1, 3, 4, 5), m(3, 2, 3, 3), m(2), [2, 2], [1, 0], plain, True, [1, 0], 1],
        [m(2, 3, 9), m(4, 3, 3), m(4), [2], [1], [1], False, [0], 1],
    ]


def convolution_gradients(m: Maker) -> list[list[Any]]:
    made = []
    for x, w, _, *how in convolutions(m):
        y = torch.ops.aten.convolution(x.float(), w.float(), None, *how)
        made.append([m(*y.shape), x, w, [y.shape[1]], *how, [True, True, True]])
    return made


def pool_gradients(m: Maker) -> list[list[Any]]:
    x = distinct(m, 1, 2, 6, 6)
    how = [[3, 2], [2, 2], [1, 0], [1, 1], False]
    y, indices = torch.ops.aten.max_pool2d_with_indices(x.float(), *how)
    return [[m(*y.shape), x, *how, indices]]


rows(
    FLOATS,
    convolution_backward__out=convolution_gradients,
    max_pool2d_with_indices_backward__grad_input=pool_gradients,
    mm__out=lambda m: [[m(5, 70), m(70, 33)], [m(1, 9), m(9, 1)], [m(3, 0), m(0, 4)]],
    bmm__out=lambda m: [[m(3, 5, 17), m(3, 17, 9)], [m(2, 1, 4), m(2, 4, 3)]],
    addmm__out=lambda m: [[m(33), m(5, 70), m(70, 33), 1, 1], [m(5, 3), m(5, 4), m(4, 3), 0.5, 2]],
    linear__out=lambda m: [[m(2, 5, 70), m(33, 70), m(33)], [m(3, 4), m(5, 4), None]],
    convolution__out=convolutions,
    avg_pool2d__out=spatial([3, 2], [2, 1], [1, 1], True, False, None),
    _adaptive_avg_pool2d__out=spatial([3, 2]),
    max_pool2d_with_indices__out=lambda m: [
        [distinct(m, 2, 2, 7, 6), [3, 2], [2, 1], [1, 1], [1, 2], True],
        [distinct(m, 1, 2, 6, 6), [2, 2], [], [0, 0], [1, 1], False],
    ],
    glu__out=lambda m: [[m(3, 8), -1], [m(4, 3), 0]],
)
row("_adaptive_avg_pool3d.out", FLOATS, lambda m: [[m(2, 3, 4, 5, 6), [2, 3, 2]]])
row("adaptive_avg_pool1d.out", FLOATS, lambda m: [[m(2, 3, 7), [3]]])
row("avg_pool1d.out", FLOATS, lambda m: [[m(2, 3, 7), [3], [2], [1], False, True]])
row(
    "avg_pool3d.out",
    FLOATS,
    lambda m: [[m(1, 2, 5, 6, 7), [2, 3, 2], [2, 1, 2], [0, 1, 1], False, True, None]],
)
row(
    "max_pool3d_with_indices.out",
    FLOATS,
    lambda m: [[distinct(m, 1, 2, 5, 6, 4), [2, 2, 2], [], [0, 0, 0], [1, 1, 1], False]],
)
