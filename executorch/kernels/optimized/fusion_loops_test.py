"""What a loop carries from round to round, and buffers that are written at the end, are operands of
fused calls; the loop of a recurrent layer is one call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from executorch.exir import dynamic_steps
from executorch.kernels.optimized.fusion_test import Case, run


def scan(step: Any, first: list[Tensor], rows: list[Tensor], *operands: Tensor) -> Any:
    return torch.ops.higher_order.scan(step, first, rows, operands)


class Loop(nn.Module):
    """scan of `step`, which is given the carried values, a row and a weight."""

    def __init__(self, step: Any, n_carried: int = 1) -> None:
        super().__init__()
        self.step, self.n = step, n_carried
        self.weight = nn.Parameter(torch.randn(6, 6) / 6)

    def forward(self, x: Tensor) -> Any:
        first = [x[0] * (i + 1) for i in range(self.n)]
        return scan(self.step, first, [x], self.weight)


def mixed(carry: Tensor, row: Tensor, weight: Tensor) -> Any:
    new = torch.tanh(carry * row + 1) - carry * 0.5
    return [new, torch.relu(new + carry) * row]


def swapped(a: Tensor, b: Tensor, row: Tensor, weight: Tensor) -> Any:
    return [b.clone(), (a + b) * 0.5, (a * row - b).tanh() * row]


def old(carry: Tensor, row: Tensor, weight: Tensor) -> Any:
    before = carry.clone()
    return [(carry + row) * 0.5, (before * 2 - row).exp()]


def product(carry: Tensor, row: Tensor, weight: Tensor) -> Any:
    new = torch.relu(carry @ weight.t() + row)
    return [new, (new * carry).tanh() + row]


@pytest.mark.parametrize(
    ("step", "n_carried", "fused"),
    [
        (mixed, 1, ["mul add tanh mul sub", "add relu mul"]),
        (swapped, 2, ["add mul", "mul sub tanh mul"]),
        (old, 1, ["add mul", "mul sub exp"]),
        (product, 1, ["permute_copy mm add relu", "mul tanh add"]),
    ],
)
def test_carried_values_are_operands(step: Any, n_carried: int, fused: list[str]) -> None:
    runs = run(Case(Loop(step, n_carried), [(torch.randn(5, 3, 6),)], 64))
    originals = [line.split(" <- ")[1].replace(".out", "") for line in runs.lines]
    found = [" ".join(op for op in ops.split() if op != "full") for ops in originals]
    assert [ops for ops in found if "select_copy" not in ops] == fused, runs.lines


class Views(nn.Module):
    """A loop behind a view of the input, whose memory the loop uses anew."""

    def forward(self, x: Tensor) -> Any:
        flat = x.view(-1, 6)

        def step(c: Tensor, row: Tensor) -> Any:
            return [(c * row).tanh() + c, c.sigmoid() * row]

        last, rows = scan(step, [flat[0] * 1], [flat])
        return last.view(2, 3) + 1, (rows * 2).relu() + flat


def test_a_loop_behind_views_of_an_input() -> None:
    assert run(Case(Views(), [(torch.randn(2, 4, 6),)], 64)).names.count("elementwise") >= 2


class Nested(nn.Module):
    """A loop in every round of a loop."""

    def forward(self, x: Tensor) -> Any:
        def inner(c: Tensor, row: Tensor) -> Any:
            return [(c + row).tanh() * 0.5, c * row + 1]

        def outer(c: Tensor, row: Tensor) -> Any:
            last, rows = scan(inner, [c * 2], [row])
            return [last + c, (rows.sum(0) * c).sigmoid() + last]

        return scan(outer, [x[0, 0] * 1], [x])


def test_loops_in_loops() -> None:
    run(Case(Nested(), [(torch.randn(3, 4, 6),)], 64))


class State(nn.Module):
    """Two buffers, of which one becomes what the other was."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.ones(4, 6))
        self.register_buffer("b", torch.zeros(4, 6))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.a.clone(), self.b.clone()
        y = torch.tanh(a * x + b) * x
        self.b.copy_(a * 0.5 + x)
        self.a.copy_((y + b).sigmoid())
        return (y * 2 + a).relu()


def test_buffers_keep_what_was_written() -> None:
    from executorch.exir import to_edge
    from executorch.kernels.optimized.fusion_test import Runs

    model, x = State().eval(), torch.randn(4, 6)
    runs = Runs(bytes(to_edge(torch.export.export(model, (x,))).to_executorch().buffer))
    assert runs.names.count("elementwise") >= 2, runs.lines
    for _ in range(3):
        x = torch.randn(4, 6)
        expected = model(x)
        for _, method in (runs.fused, runs.plain):
            torch.testing.assert_close(method.call((x,))[0], expected)


class Layers(nn.Module):
    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor) -> Any:
        y, state = self.layers(x)
        return y.relu(), state


LAYERS = {
    "lstm": (nn.LSTM(5, 12, 2), ["lstm", "lstm"]),
    "lstm both ways": (nn.LSTM(5, 7, bidirectional=True, batch_first=True), ["lstm", "lstm"]),
    "lstm without biases": (nn.LSTM(5, 12, bias=False), ["lstm"]),
    "gru": (nn.GRU(5, 12, 2, batch_first=True), ["gru", "gru"]),
    "gru without biases": (nn.GRU(5, 12, bias=False), ["gru"]),
    "rnn": (nn.RNN(5, 33), ["rnn"]),
    "rnn of relu": (nn.RNN(5, 12, 2, nonlinearity="relu"), ["rnn", "rnn"]),
    "projected": (nn.LSTM(5, 12, proj_size=4), []),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_recurrent_layer_is_one_call(name: str) -> None:
    layers, fused = LAYERS[name]
    steps = 1 if layers.batch_first else 0
    dim = Dim("steps", min=1, max=40)

    def inputs(n: int) -> tuple[Tensor, ...]:
        return (torch.randn((3, n, 5) if steps == 1 else (n, 3, 5)),)

    with dynamic_steps():
        runs = run(Case(Layers(layers), [inputs(n) for n in (9, 1, 40, 2)], 128, ({steps: dim},)))
    found = [name for name in runs.names if name in ("lstm", "gru", "rnn")]
    assert found == fused, runs.lines


def other_gates(h: Tensor, c: Tensor, row: Tensor, weight: Tensor) -> Any:
    """As an LSTM, but its gates are in another order."""
    i, o, u, f = (h @ weight.t() + row).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * u.tanh()
    h = o.sigmoid() * c.tanh()
    return [h, c, h.clone()]


def other_cell(h: Tensor, c: Tensor, row: Tensor, weight: Tensor) -> Any:
    """As an LSTM, but what it carries as the cell is bounded."""
    i, f, u, o = (h @ weight.t() + row).chunk(4, 1)
    c = (f.sigmoid() * c + i.sigmoid() * u.tanh()).clamp(-0.5, 0.5)
    h = o.sigmoid() * c.tanh()
    return [h, c, h.clone()]


def other_result(h: Tensor, c: Tensor, row: Tensor, weight: Tensor) -> Any:
    """As an LSTM, but it gives its cells."""
    i, f, u, o = (h @ weight.t() + row).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * u.tanh()
    return [o.sigmoid() * c.tanh(), c, c.clone()]


def other_share(h: Tensor, c: Tensor, row: Tensor, weight: Tensor) -> Any:
    """As an LSTM, but the row counts twice."""
    i, f, u, o = (h @ weight.t() + row * 2).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * u.tanh()
    h = o.sigmoid() * c.tanh()
    return [h, c, h.clone()]


class Cells(nn.Module):
    def __init__(self, step: Any) -> None:
        super().__init__()
        self.step, self.weight = step, nn.Parameter(torch.randn(24, 6) / 3)

    def forward(self, x: Tensor) -> Any:
        zeros = torch.zeros(x.shape[1], 6)
        return scan(self.step, [zeros, zeros.clone()], [x], self.weight)


@pytest.mark.parametrize("step", [other_gates, other_cell, other_result, other_share])
def test_what_resembles_a_recurrent_layer_runs_as_it_is_written(step: Any) -> None:
    assert "lstm" not in run(Case(Cells(step), [(torch.randn(4, 3, 24),)], 64)).names
