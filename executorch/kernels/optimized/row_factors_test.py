"""Products that count where a factor is not zero, as the experts of a mixture: other rows are not
computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import to_edge
from executorch.kernels.optimized.fusion_test import Case, Runs, run

WIDTH, HIDDEN, EXPERTS, MOST = 32, 48, 4, 64
NEVER = 2  # the expert that no token picks
ROWS = (MOST, 1, 2, 3, 17)
SELECTED = "+selected_rows"


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


class Expert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * HIDDEN), nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)  # type: ignore[no-any-return]


class Mixture(nn.Module):
    """Every expert computes, and counts where it was picked."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))
        with torch.no_grad():
            self.router.bias[NEVER] = -100

    def factors(self, x: Tensor) -> Tensor:
        shares, picked = self.router(x).float().softmax(-1).topk(2, -1)
        return torch.zeros(*x.shape[:-1], EXPERTS).scatter(-1, picked, shares)

    def forward(self, x: Tensor) -> Tensor:
        factors, total = self.factors(x), torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            total = total + (expert(x) * factors[..., i : i + 1]).to(x.dtype)
        return total


class Swapped(Mixture):
    """The factor first, and with numbers that are added and multiplied on the way."""

    def forward(self, x: Tensor) -> Tensor:
        factors, total = self.factors(x), x
        for i, expert in enumerate(self.experts):
            total = factors[..., i : i + 1].to(x.dtype) * (torch.tanh(expert(x)) + 0.5) + total
        return total


def selected(runs: Runs) -> int:
    return sum(name.endswith(SELECTED) for name in runs.names)


def case(module: nn.Module, dtype: torch.dtype, dim: int) -> Case:
    inputs = [torch.randn(rows, WIDTH).to(dtype) for rows in ROWS]
    if dim == 1:
        inputs = [x[None] for x in inputs]
    # In bfloat16 eager rounds what is fused here.
    length = 4 * WIDTH * HIDDEN if dtype is torch.float32 else 8
    return Case(module.to(dtype), [(x,) for x in inputs], length, ({dim: Dim("t", max=MOST)},))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("kind", "dim"), [(Mixture, 0), (Mixture, 1), (Swapped, 1)])
def test_mixtures(kind: type[Mixture], dim: int, dtype: torch.dtype) -> None:
    assert selected(run(case(kind(), dtype, dim))) == 2 * EXPERTS


@pytest.mark.parametrize("bits", [torch.int8, torch.int4])
def test_weights_may_be_integers(bits: torch.dtype) -> None:
    from torchao.quantization import IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    module = Mixture()
    quantize_(module.experts, IntxWeightOnlyConfig(bits, PerGroup(16)))
    assert selected(run(case(module, torch.float32, 1))) == 2 * EXPERTS


def loaded(module: nn.Module, x: Tensor) -> Runs:
    program = export(module, (x,), dynamic_shapes=({0: Dim("t", max=MOST)},))
    return Runs(bytes(to_edge(program).to_executorch().buffer))


@pytest.mark.parametrize("rows", ROWS)
def test_weights_of_an_expert_that_no_token_picks_are_not_read(rows: int) -> None:
    module, x = Mixture().eval(), torch.randn(rows, WIDTH)
    expected = module(x)
    for parameter in module.experts[NEVER].parameters():
        parameter.data.fill_(torch.nan)
    runs = loaded(module, torch.randn(MOST, WIDTH))
    torch.testing.assert_close(runs.fused[1].call((x,))[0], expected)
    assert runs.plain[1].call((x,))[0].isnan().any()


def test_factors_that_are_all_zero() -> None:
    class Never(Mixture):
        def factors(self, x: Tensor) -> Tensor:
            return super().factors(x) * 0.0

    module = Never().eval()
    for parameter in module.experts.parameters():
        parameter.data.fill_(torch.nan)
    runs = loaded(module, torch.randn(MOST, WIDTH))
    assert torch.equal(runs.fused[1].call((torch.randn(5, WIDTH),))[0], torch.zeros(5, WIDTH))


def test_a_factor_that_is_not_a_number_counts() -> None:
    runs = loaded(Mixture().eval(), torch.randn(MOST, WIDTH))
    x = torch.randn(3, WIDTH)
    x[1, 0] = torch.nan
    rows = runs.fused[1].call((x,))[0].isnan()
    assert rows[1].all() and not rows[0].any() and not rows[2].any()


class Written(nn.Module):
    """A sum that `write` makes of the input, of a layer, and of a factor for each row."""

    def __init__(self, write: Callable[[Tensor, nn.Module, Callable[[], Tensor]], Tensor]) -> None:
        super().__init__()
        self.layer, self.write = nn.Linear(WIDTH, WIDTH), write

    def forward(self, x: Tensor) -> Tensor:
        return self.write(x, self.layer, lambda: F.relu(x.sum(-1, keepdim=True)))


def plain(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    f = factor()
    return x + layer(x) * f


def infinite_at_zero(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    f = factor()
    return x + layer(x).reciprocal() * f


def read_elsewhere(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    f, y = factor(), layer(x)
    return x + y * f + y


def not_summed(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    f = factor()
    return layer(x) * f


def factor_of_the_result(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    y = layer(x)
    return x + y * F.relu(y.sum(-1, keepdim=True))


def factor_of_a_column(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    f = F.relu(x.sum(0, keepdim=True))
    return x + layer(x) * f


def summed_over_rows(x: Tensor, layer: nn.Module, factor: Callable[[], Tensor]) -> Tensor:
    f = factor()
    return x + layer(x).cumsum(0) * f


@pytest.mark.parametrize(
    ("write", "n"),
    [
        (plain, 1),
        (infinite_at_zero, 0),
        (read_elsewhere, 0),
        (not_summed, 0),
        (factor_of_the_result, 0),
        (factor_of_a_column, 0),
        (summed_over_rows, 0),
    ],
)
def test_only_what_is_multiplied_by_zero_is_left_out(
    write: Callable[[Tensor, nn.Module, Callable[[], Tensor]], Tensor], n: int
) -> None:
    # The inverse of a small number has large rounding errors.
    length = 10 * WIDTH * (100 if write is infinite_at_zero else 1)
    inputs = [(torch.randn(rows, WIDTH),) for rows in ROWS]
    made = Case(Written(write), inputs, length, ({0: Dim("t", max=MOST)},))
    assert selected(run(made)) == n
