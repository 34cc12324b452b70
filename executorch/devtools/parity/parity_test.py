"""The parity gate: what is right passes, what is wrong is found by its name and line."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from executorch.devtools.parity import check_parity
from executorch.devtools.parity.__main__ import main
from executorch.devtools.parity.check import _Eager
from executorch.devtools.parity.compare import compare
from executorch.exir import to_edge
from executorch.runtime import Runtime


class Small(nn.Module):
    """x float [t, 8], index int64 [t] < 4 to [t, 8]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(4, 8)
        self.norm = nn.LayerNorm(8)
        self.hidden = nn.Linear(8, 16)
        self.out = nn.Linear(16, 8)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        y = self.norm(x + self.table(index))
        y = torch.softmax(self.out(torch.nn.functional.gelu(self.hidden(y))), -1)
        return torch.sub(y, x)


def example() -> tuple[Any, tuple[Any, ...], Any]:
    t = torch.export.Dim("t", min=1, max=37)
    torch.manual_seed(1)
    inputs = (torch.randn(5, 8), torch.tensor([0, 1, 2, 3, 0]))
    return Small(), inputs, ({0: t}, {0: t})


@pytest.fixture(scope="module")
def program() -> bytes:
    model, inputs, shapes = example()
    exported = torch.export.export(model, inputs, dynamic_shapes=shapes)
    return to_edge(exported).to_executorch().buffer


def test_boundary_sizes_of_dynamic_dimensions_pass(program: bytes) -> None:
    model, inputs, shapes = example()
    report = check_parity(program, model, inputs, dynamic_shapes=shapes)
    assert report.passed, str(report)
    assert [c.name.rpartition(" = ")[2] for c in report.cases[1:]] == ["1", "2", "19", "36", "37"]
    assert not any(c.skipped for c in report.cases)


def test_a_number_among_the_inputs_does_not_hide_boundary_sizes() -> None:
    class Scaled(nn.Module):
        def forward(self, n: int, x: Tensor) -> Tensor:
            return x * n

    inputs = (3, torch.randn(4))
    shapes = (None, {0: torch.export.Dim("d", max=16)})
    exported = torch.export.export(Scaled(), inputs, dynamic_shapes=shapes)
    report = check_parity(to_edge(exported).to_executorch(), exported, inputs)
    assert [c.name for c in report.cases[1:]] == [
        f"input 1 (x), dimension 0 = {n}" for n in (1, 2, 7, 15, 16)
    ]


def test_inputs_that_calls_write_are_given_as_they_were() -> None:
    class Writes(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: Tensor) -> Tensor:
            return torch.sin(x.add_(1)) * self.factor

    inputs = (torch.randn(4),)
    before = inputs[0].clone()
    program = to_edge(torch.export.export(Writes(2.0), inputs)).to_executorch()
    assert check_parity(program, Writes(2.0), inputs).passed
    assert not check_parity(program, Writes(2.01), inputs).passed
    assert torch.equal(inputs[0], before)


def test_what_eager_refuses_without_a_word_is_skipped_by_the_error_s_name() -> None:
    class Refuses(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[0] == 2:
                raise AssertionError
            return x + 1

    shapes = ({0: torch.export.Dim("d", min=3, max=8)},)
    exported = torch.export.export(Refuses(), (torch.zeros(4),), dynamic_shapes=shapes)
    program = to_edge(exported).to_executorch()
    report = check_parity(program, Refuses(), [(torch.zeros(4),), (torch.zeros(2),)])
    assert [c.skipped for c in report.cases] == ["", "eager PyTorch: AssertionError"]


def test_another_model_fails_though_its_operators_are_right(program: bytes) -> None:
    model, inputs, _ = example()
    model.out.weight.data[3, 4] += 0.01
    report = check_parity(program, model, inputs)
    assert not report.passed
    assert not report.suspects
    assert "aten::addmm.out" in report.checked
    assert "the program does not compute what the model does" in str(report)


@pytest.mark.parametrize(
    "inputs, cause",
    [
        ((torch.ones(()),), r"input 0 \(.*\) has shape \(2, 3\), expected \(\)"),
        ((torch.ones(2), torch.ones(2)), "takes 2 inputs, got 1"),
    ],
)
def test_a_program_that_takes_other_inputs_is_an_error_that_says_so(
    inputs: tuple[Tensor, ...], cause: str
) -> None:
    class Sum(nn.Module):
        def forward(self, *values: Tensor) -> Tensor:
            return sum(values[1:], values[0])

    class Scaled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    program = to_edge(torch.export.export(Sum(), inputs)).to_executorch()
    rows = torch.export.Dim("rows", max=8)
    with pytest.raises(RuntimeError, match=cause):
        check_parity(program, Scaled(), (torch.ones(2, 3),), dynamic_shapes=({0: rows},))


def test_a_broken_operator_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's softmax is bent, so the runtime's is the one that looks broken."""
    model, inputs, shapes = example()
    exported = torch.export.export(model, inputs, dynamic_shapes=shapes)
    data = to_edge(exported).to_executorch().buffer
    from executorch.devtools.parity import replay

    right = replay._find

    def find(name: str, overload: str) -> Any:
        return _Bent(right(name, overload)) if name == "aten::_softmax" else right(name, overload)

    monkeypatch.setattr(replay, "_find", find)
    model.out.bias.data[0] += 1  # so that the outputs differ as well
    report = check_parity(data, model, inputs)
    suspect = report.suspects[0]
    assert suspect.operator == "aten::_softmax.out"
    assert suspect.difference is not None
    assert suspect.difference.expected == pytest.approx(suspect.difference.found * 1.01)
    lines, first = inspect.getsourcelines(Small.forward)
    line = first + next(i for i, text in enumerate(lines) if "softmax" in text)
    assert f"parity_test.py:{line}" in suspect.place


def test_parts_of_a_list_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    class Parts(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return torch.split(x, [2, 6], -1)

    from executorch.devtools.parity import replay

    x = torch.randn(3, 8)
    data = to_edge(torch.export.export(Parts(), (x,))).to_executorch().buffer
    right = replay._find

    def find(name: str, overload: str) -> Any:
        return _BentParts(right(name, overload)) if "split" in name else right(name, overload)

    def suspects() -> list[str]:
        method = Runtime.get().load_program(data).load_method("forward")
        assert method is not None
        found = replay.Replay.of(data, "forward").suspects(method._method, [x])
        return [s.operator for s in found]

    assert suspects() == []
    monkeypatch.setattr(replay, "_find", find)
    assert suspects() == ["aten::split_with_sizes_copy.out"]


class _Bent:
    def __init__(self, operator: Any) -> None:
        self.operator = operator
        self._schema = operator._schema
        self.tags = operator.tags

    def __call__(self, *args: Any, out: Tensor) -> Tensor:
        return self.operator(*args, out=out).mul_(1.01)


class _BentParts(_Bent):
    def __call__(self, *args: Any, out: Any) -> Any:
        self.operator(*args, out=out)
        out[1].mul_(1.01)


def test_mutable_state_is_the_same_before_every_case() -> None:
    class Counter(nn.Module):
        count: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.count.add_(1)
            return x * self.count

    model = Counter()
    exported = torch.export.export(model, (torch.ones(3),))
    program = to_edge(exported).to_executorch()
    report = check_parity(program, model, [(torch.ones(3),), (torch.full((3,), 2.0),)])
    assert report.passed, str(report)
    assert float(model.count) == 0


def test_command_prints_and_returns_what_it_found(
    program: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.pte"
    path.write_bytes(program)
    assert main([str(path), f"{__file__}:example"]) == 0
    assert capsys.readouterr().out.endswith("forward: PASS\n")
    assert main([str(path), f"{__file__}:nothing"]) == 2
    assert "no function 'nothing'" in capsys.readouterr().err
    assert main([str(tmp_path / "none.pte"), f"{__file__}:example"]) == 2


def test_large_integers_are_compared_exactly() -> None:
    large = 2**53
    found, expected = torch.tensor([3, large + 1]), torch.tensor([3, large])
    message, difference = compare(found, expected, torch.zeros(()))
    assert message.startswith(f"at [1]: found {large + 1}, expected {large} +- 0 (1 of 2 ")
    assert difference is not None and difference.found == large + 1
    assert compare(found, found, torch.zeros(())) == ("", None)
    assert compare(found, expected, torch.ones(())) == ("", None)
    least, most = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max
    message, _ = compare(torch.tensor([least]), torch.tensor([most]), torch.ones(()))
    assert f"found {least}, expected {most}" in message


class Cancels(nn.Module):
    """Sums whose terms are far larger than they are, behind a cast to the type that is there."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        half = torch.randn(16, 300) * 1000
        self.weight = nn.Parameter(torch.cat([half, -half + torch.randn(16, 300) * 1e-3], 1))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(torch.cat([x, x], 1).to(torch.float32), self.weight)


def test_exported_programs_that_cast_are_compared_with_float64() -> None:
    inputs = (torch.randn(4, 300, generator=torch.Generator().manual_seed(1)),)
    model = Cancels()
    exported = torch.export.export(model, inputs, strict=False)
    (expected,) = _Eager(exported, None).in_double(inputs) or [None]
    assert expected is not None and expected.dtype == torch.float64
    x = torch.cat([inputs[0], inputs[0]], 1).double()
    torch.testing.assert_close(expected, x @ model.weight.double().T, rtol=1e-9, atol=1e-9)
    program = to_edge(exported).to_executorch().buffer
    method = Runtime.get().load_program(program).load_method("forward")
    assert method is not None
    (found,) = method.execute(list(inputs))
    # Rounding may change it by more than roundings of the result.
    off = (found - model(*inputs).detach()).abs().max()
    assert off > 16 * torch.finfo().eps * found.abs().max()
    report = check_parity(program, exported, inputs)
    assert report.passed, str(report)
