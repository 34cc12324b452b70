"""Operators outside core ATen that torch.export leaves whole: exported, they run and agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.capture._callable import as_module
from executorch.runtime import Runtime


def in_program(function: Callable[..., Any], *args: torch.Tensor) -> list[Any]:
    program = to_edge(torch.export.export(as_module(function), args)).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    return list(method.execute(list(args)))


M = torch.tensor([[3.0, 1.0, 2.0, 2.5], [float("nan"), -1.0, 5.0, 0.5], [7.0, 6.0, -7.0, 0.0]])
I = torch.tensor([[4, 4, 2, 2, 1], [0, 9, 9, -3, 9]])  # noqa: E741
B = torch.arange(24.0).reshape(2, 3, 4) / 7

EXACT: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "addbmm": (lambda s, a, b: s.addbmm(a, b, alpha=2), (M[:, :3], B, B.mT.contiguous())),
    "addbmm without self": (lambda s, a, b: s.addbmm(a, b, beta=0), (M[:, :3], B, B.mT)),
    "addmv": (lambda s, a, b: torch.addmv(s, a, b), (M[0, :3], B[0], B[1, 0])),
    "bicubic": (
        lambda x: [
            torch.nn.functional.interpolate(x.to(dtype), mode="bicubic", antialias=antialias, **how)
            for antialias in (False, True)
            for dtype in (torch.float32, torch.float64)
            for how in (
                {"size": (5, 7)},
                {"size": (1, 2), "align_corners": True},
                {"scale_factor": (2.5, 0.7)},
                {"scale_factor": 3, "align_corners": True, "recompute_scale_factor": True},
            )
        ],
        (torch.sin(B.reshape(1, 2, 3, 4) * 5),),
    ),
    "affine_grid": (
        lambda t: [
            torch.nn.functional.affine_grid(t, [2, 1, *extents], align_corners=a)
            for extents in ([4, 5], [1, 3])
            for a in (False, True)
        ],
        (B[:, :2, :3],),
    ),
    "matrix times vector": (
        lambda m, v, i, j: [m @ v, m.T @ m[:, 0], i @ j],
        (B[0], B[1, 0], I[:, :3], I[0, 2:]),
    ),
    "affine_grid in space": (
        lambda t: torch.nn.functional.affine_grid(t, [2, 1, 3, 1, 4], align_corners=False),
        (B,),
    ),
    "trilinear": (
        lambda x: [
            torch.nn.functional.interpolate(x.to(dtype), mode="trilinear", **how)
            for dtype in (torch.float32, torch.float16)
            for how in (
                {"scale_factor": 2},
                {"scale_factor": (1.5, 2, 0.75), "align_corners": True},
                {"size": (5, 2, 7)},
                {"size": (1, 6, 3), "align_corners": True},
            )
        ],
        (B.reshape(2, 1, 2, 3, 2),),
    ),
    "bilinear": (torch.nn.functional.bilinear, (B[0], B[1], torch.ones(5, 4, 4), torch.ones(5))),
    "bilinear of integers": (
        torch.nn.functional.bilinear,
        (I[:, :3], I[:, 1:], torch.ones(2, 3, 4, dtype=torch.int64)),
    ),
    "conv_tbc": (torch.conv_tbc, (B, torch.ones(2, 4, 3), torch.ones(3))),
    "instance_norm in training": (
        lambda x, m, v: torch.nn.functional.instance_norm(x, m, v),
        (B, torch.zeros(3), torch.ones(3)),
    ),
    "kthvalue": (lambda x: torch.kthvalue(x, 2), (M,)),
    "kthvalue of a column": (lambda x: torch.kthvalue(x, 3, 0, keepdim=True), (M,)),
    "kthvalue of a number": (lambda x: torch.kthvalue(x, 1), (M[0, 0],)),
    "median": (torch.median, (M,)),
    "median of integers": (torch.median, (I,)),
    "median along a dim": (lambda x: torch.median(x, 1), (M,)),
    "median of integers along a dim": (lambda x: torch.median(x, -1, keepdim=True), (B.long(),)),
    "median of a number": (lambda x: torch.median(x, 0), (M[0, 0],)),
    "nanmedian": (torch.nanmedian, (M,)),
    "nanmedian along a dim": (lambda x: torch.nanmedian(x, 0, keepdim=True), (M,)),
    "mode": (lambda x: torch.mode(x, 1)[0], (I,)),
    "stable sort": (lambda x: torch.sort(x, stable=True, descending=True), (I,)),
    "histc": (lambda x: torch.histc(x, 4, -1, 5), (M[::2],)),
    "histc of its own range": (lambda x: torch.histc(x, 3), (M[::2],)),
    "scatter add": (lambda x, i: x.scatter(1, i, x, reduce="add"), (M, (M > 1).long())),
    "scatter multiply": (lambda x, i: x.scatter(1, i, 3, reduce="multiply"), (M, (M > 1).long())),
    "index_reduce": (
        lambda x, i: x.index_reduce(0, i, x, "amax"),
        (M, torch.tensor([2, 0, 2])),
    ),
    "put": (lambda x, i: torch.put(x, i, x[0, :2], accumulate=True), (M, torch.tensor([5, 5]))),
    "diagonal_scatter": (
        lambda x, y: torch.diagonal_scatter(x, y, -1, 2, 1),
        (B, torch.full((2, 3), 9.0)),
    ),
    "as_strided_scatter": (
        lambda x, y: torch.as_strided_scatter(x, y, (2, 2), (3, 1), 1),
        (B, torch.full((2, 2), 9.0)),
    ),
    "nonzero_static": (lambda x: torch.nonzero_static(x, size=4), (I > 3,)),
    "nonzero_static of few": (lambda x: torch.nonzero_static(x, size=9, fill_value=7), (I > 3,)),
    "roll": (
        lambda x: (x.roll(1), x.roll(-5, 1), x.roll((2, 7), (0, -1)), x.roll(0, 1), x.roll(3, 0)),
        (B,),
    ),
    "range": (lambda x: x + torch.range(1, 3, 0.5), (M[0, :1],)),
    "identities": (
        lambda x: (x * torch.eye(300), x + torch.eye(x.shape[0], 260, dtype=torch.bool)),
        (M[:1, :1].expand(300, 1),),
    ),
    "linspace of integers": (
        lambda x: x + torch.linspace(4.3, 0, 50, dtype=torch.int64),
        (I[:, :1],),
    ),
    "empty_like": (lambda x: torch.empty_like(x).fill_(3), (B.transpose(0, 1),)),
    "polar": (lambda r, a: torch.view_as_real(torch.polar(r, a)), (B[0], B[1])),
}


def bounded_counts(x: torch.Tensor) -> torch.Tensor:
    counts = torch.bincount(x.reshape(-1).abs(), minlength=5)
    torch._check(counts.shape[0] <= 12)
    return counts


def two_selections(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Of equal looks and different sizes."""
    a, b = x[x > 1], y[y > 1]
    return a, b, a * a.shape[0], b * b.shape[0]


def keep_low_frequencies(x: torch.Tensor) -> torch.Tensor:
    """As spectral layers do: zeros, of which a part is written."""
    spectrum = torch.fft.rfft(x)
    kept = torch.zeros_like(spectrum)
    kept[..., :1] = spectrum[..., :1] * 2
    kept[..., -1] = spectrum[..., 1]
    filled = torch.zeros(spectrum.shape, dtype=torch.complex64)
    filled[:1] = kept[:1]
    return torch.fft.irfft(kept + filled, n=x.shape[-1])


def write_rows_and_columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    y = y.clone()
    x = x.clone()
    y[1] = y[0] * 2
    x[:, -1] = x[:, 0]
    x[..., 0] += 1
    x[0, 1, -2] = y.sum()
    return x


EXACT |= {
    "bincount within a bound": (bounded_counts, (I,)),
    "boolean masks of equal shapes": (two_selections, (B, B - 2)),
    "where of one argument": (lambda x: torch.where(x > 2), (M,)),
    "nonzero of a list": (lambda x: x.nonzero(as_tuple=True), (I[0] - 2,)),
    "unique": (lambda x: torch.unique(x, return_inverse=True, return_counts=True), (I,)),
    "take at a number": (torch.take, (M, torch.tensor(3))),
    "complex cast": (lambda x: torch.view_as_real(x.to(torch.complex64)), (B,)),
    "complex numbers as factors": (lambda x: torch.view_as_real(torch.fft.fft2(x) * 2j), (B,)),
    "complex frequencies kept": (keep_low_frequencies, (B,)),
    "complex padding": (
        lambda x: torch.fft.irfft(torch.nn.functional.pad(torch.fft.rfft(x), (0, 3)), n=10),
        (B,),
    ),
    "all and any of a mask": (
        lambda x: (torch._is_all_true(x > 2), torch._is_any_true(x > 2)),
        (M,),
    ),
    "rows and columns written": (write_rows_and_columns, (B, M)),
    "real part by cast": (lambda x: torch.complex(x, x + 1).to(torch.float64), (B,)),
    "fft of reals in two dims": (lambda x: torch.view_as_real(torch.fft.fft2(x)), (B,)),
    "shifts": (lambda x: (x << 2, x >> 1, x << x.abs()), (I,)),
    "view as another dtype": (lambda x: x.view(torch.int32), (B,)),
    "view as bytes": (lambda x: x.view(torch.uint8), (B,)),
    "pinv": (torch.linalg.pinv, (B[0],)),
    "inverse": (torch.linalg.inv, (B[0, :, :3] + 3 * torch.eye(3),)),
    "determinant": (torch.linalg.det, (B[0, :, :3] + 3 * torch.eye(3),)),
    "solve": (torch.linalg.solve, (B[0, :, :3] + 3 * torch.eye(3), B[1])),
    "cholesky_solve": (
        lambda b, x: torch.cholesky_solve(b, torch.linalg.cholesky(x @ x.mT + torch.eye(3))),
        (B[1], B[0]),
    ),
    "triangular_solve": (
        lambda b, x: torch.triangular_solve(b, x + 3 * torch.eye(3), upper=False),
        (B[1], B[0, :, :3]),
    ),
    "clamp of bools": (lambda x, y: torch.clamp_max(x, y), (M > 1, M > 2)),
}


@pytest.mark.parametrize("name", EXACT)
def test_operator_beyond_core_agrees_with_eager(name: str) -> None:
    function, args = EXACT[name]
    want = function(*[a.clone() for a in args])
    want = [want] if isinstance(want, torch.Tensor) else list(want)
    torch.testing.assert_close(in_program(function, *args)[: len(want)], want, equal_nan=True)


N = 20000
DRAWS: dict[str, tuple[Callable[..., Any], float]] = {
    "bernoulli": (lambda x: torch.bernoulli(x, 0.3), 0.3),
    "exponential": (lambda x: x.clone().exponential_(2.0), 0.5),
    "geometric": (lambda x: x.clone().geometric_(0.25), 4.0),
    "normal": (lambda x: torch.normal(x + 2, 0.5), 2.0),
    "normal_": (lambda x: x.clone().normal_(3, 1), 3.0),
    "rrelu": (lambda x: torch.nn.functional.rrelu(x - 1, 0.2, 0.6, True), -0.4),
    "uniform": (lambda x: x.clone().uniform_(-1, 3), 1.0),
    "randint_like": (lambda x: torch.randint_like(x, 2, 5), 3.0),
    "alpha_dropout": (lambda x: torch.nn.functional.alpha_dropout(x, 0.4, True), 0.0),
    "multinomial": (
        lambda x: torch.multinomial((x[:3] + torch.tensor([1, 0, 3])), N, True).float(),
        1.5,
    ),
    "multinomial of one": (
        lambda x: torch.multinomial(x[:, None] + torch.tensor([1.0, 0.0, 3.0]), 1).float(),
        1.5,
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_operator_beyond_core_has_its_mean(name: str) -> None:
    function, mean = DRAWS[name]
    (found,) = in_program(function, torch.zeros(N))
    error = found.std().item() / N**0.5
    assert abs(found.mean().item() - mean) < 5 * error


def test_distinct_elements_of_a_dynamic_tensor_are_bounded_by_their_number() -> None:
    x = torch.randint(0, 4, (7, 2))
    call = as_module(lambda x: torch.unique(x, return_counts=True))
    rows = torch.export.Dim("rows", max=20)
    exported = torch.export.export(call, (x,), dynamic_shapes=({0: rows},))
    method = (
        Runtime.get().load_program(to_edge(exported).to_executorch().buffer).load_method("forward")
    )
    assert method is not None
    for given in (x, torch.arange(40).reshape(20, 2), x[:1]):
        torch.testing.assert_close(list(method.execute([given])), list(call(given)))


@pytest.mark.parametrize(("scale", "antialias"), [(2, False), (2, True), (0.4, True)])
def test_bicubic_of_bytes_is_off_by_one_at_most(scale: float, antialias: bool) -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(
            x, scale_factor=scale, mode="bicubic", antialias=antialias
        )

    x = torch.randint(0, 256, (1, 2, 9, 8), dtype=torch.uint8)
    (ours,) = in_program(resized, x)
    assert ours.dtype == torch.uint8
    torch.testing.assert_close(ours.int(), resized(x).int(), rtol=0, atol=1)


def test_draws_without_replacement_differ() -> None:
    weights = torch.tensor([0.1, 0.0, 0.4, 0.5]).repeat(50, 1)
    (found,) = in_program(lambda w: torch.multinomial(w, 3), weights)
    assert all(sorted(row) == [0, 2, 3] for row in found.tolist())


def test_an_operator_of_the_exception_list_stays_whole() -> None:
    aten = torch.ops.aten
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[aten.median.default])
    edge = to_edge(torch.export.export(as_module(torch.median), (M,)), compile_config=config)
    assert "aten_median_default" in edge.exported_program().graph_module.code
