"""Arguments for operators outside core ATen: special functions, distinct elements, matrices."""

from __future__ import annotations

from typing import Any

import torch

from tests.ops.samples import ALL, FLOATS, INTS, Maker, row, rows

SINGLE = (torch.float32,)
WIDE = (torch.float32, torch.float64)


def near(low: float, high: float) -> Any:
    return lambda m: [[m(4, 6, low=low, high=high)], [m(low=low, high=high)], [m(0, 2)]]


def pairs(low: float, high: float) -> Any:
    return lambda m: [
        [m(4, 6, low=low, high=high), m(6, low=low, high=high)],
        [m(low=low, high=high), m(2, 0)],
    ]


def matrices(m: Maker, *shape: int) -> torch.Tensor:
    """Far from singular."""
    return m(*shape) + 9 * torch.eye(shape[-2], shape[-1], dtype=m.dtype)


def positive(m: Maker, *shape: int) -> torch.Tensor:
    a = m(*shape)
    return a @ a.mT + 2 * torch.eye(shape[-1], dtype=m.dtype)


def diagonal(m: Maker, n: int) -> torch.Tensor:
    """Whose eigenvectors are the axes, of different eigenvalues that fall."""
    return torch.diag(torch.arange(n, 0, -1)).to(m.dtype)


row("i0.out special_i0e.out special_i1.out special_i1e.out", WIDE, near(-30, 30))
# Eager's own of doubles are right to nine digits.
row("special_bessel_j0.out special_bessel_j1.out", SINGLE, near(-4, 4))
row("special_bessel_y0.out special_bessel_y1.out", SINGLE, near(0.125, 4))
row("polygamma.out", SINGLE, lambda m: [[n, m(3, 5, low=0.25, high=9)] for n in range(4)])
row("special_modified_bessel_i0.out special_modified_bessel_i1.out", WIDE, near(-9, 9))
row("special_modified_bessel_k0.out special_modified_bessel_k1.out", WIDE, near(0.125, 9))
row(
    "special_scaled_modified_bessel_k0.out special_scaled_modified_bessel_k1.out",
    WIDE,
    near(0.125, 40),
)
row("special_spherical_bessel_j0.out special_erfcx.out", WIDE, near(-2, 9))
row("special_ndtri.out", WIDE, near(0, 1))
row("digamma.out", WIDE, near(0.25, 20))
row("igamma.out igammac.out", WIDE, pairs(0.25, 12))
row("special_zeta.out", WIDE, pairs(1.5, 9))
row("gcd.out lcm.out", INTS, pairs(-6, 6))
row("nextafter.out", WIDE, lambda m: pairs(-4, 4)(m) + [[m.edge(), m.edge().flip(0)]])
row(
    "logcumsumexp.out",
    FLOATS,
    lambda m: [[m(3, 40), 1], [m(3, 40), 0], [m(), 0], [m.edge(), -1], [m(0, 2), 1]],
)
rows(
    ALL,
    _unique2__out=lambda m: [[m(4, 5), True, True, True], [m(9), True, False, False]],
    unique_consecutive__out=lambda m: [
        [m(20, low=0, high=1), True, True, None],
        [m(6, 2, low=0, high=1), True, True, 0],
    ],
    unique_dim__out=lambda m: [
        [m(3, 9, low=0, high=1), 1, True, True, True],
        [m(9, 2, low=0, high=1), 0, True, True, True],
    ],
)
row(
    "bincount.out",
    INTS,
    lambda m: [[m(30, low=0), None, 2], [m(30, low=0), torch.rand(30).double(), 9]],
)
row(
    "view_copy.dtype_out",
    INTS + WIDE,
    lambda m: [[m(2, 16), torch.uint8], [m(2, 16), torch.float64], [m(4, 3), m.dtype]],
)
rows(
    WIDE,
    _linalg_det__result=lambda m: [[matrices(m, 3, 4, 4)], [matrices(m, 2, 2)]],
    _linalg_slogdet__sign=lambda m: [[matrices(m, 3, 4, 4)], [-matrices(m, 3, 3)]],
    _linalg_solve_ex__result=lambda m: [
        [matrices(m, 2, 3, 3), m(2, 3, 5), True, False],
        [matrices(m, 3, 3), m(3), True, False],
        [matrices(m, 3, 3), m(5, 3), False, True],
    ],
    _linalg_eigh__eigenvalues=lambda m: [
        [positive(m, 2, 4, 4), "L", False],
        [positive(m, 3, 3), "U", False],
        [diagonal(m, 4), "L", True],
    ],
    _linalg_svd__U=lambda m: [
        [m(2, 4, 3), False, False, None],
        [m(3, 5), True, False, None],
        [diagonal(m, 4), False, True, None],
    ],
    linalg_cholesky_ex__L=lambda m: [
        [positive(m, 2, 4, 4), False, False],
        [positive(m, 3, 3), True, True],
    ],
    linalg_inv_ex__inverse=lambda m: [[matrices(m, 2, 4, 4), False], [matrices(m, 1, 1), True]],
    linalg_lu_factor_ex__out=lambda m: [
        [matrices(m, 2, 4, 4), True, False],
        [matrices(m, 3, 5), True, False],
    ],
    linalg_qr__out=lambda m: [
        [m(2, 4, 3), "reduced"],
        [m(4, 3), "complete"],
        [m(3, 5), "reduced"],
        [m(3, 5), "r"],
    ],
    linalg_solve_triangular__out=lambda m: [
        [matrices(m, 2, 3, 3).tril(), m(3, 5), False, True, False],
        [matrices(m, 3, 3).triu(), m(2, 5, 3), True, False, False],
        [m(3, 3).triu(), m(3, 2), True, True, True],
    ],
)
