"""The C interface on programs with and without memory of inputs and outputs, and short files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from executorch.exir import ExecutorchProgramManager
from executorch.extension.pybindings.misuse_test import lower
from tests.built import BUILD, needs

BINARY = BUILD / "executorch" / "extension" / "c_api" / "c_api_test"
pytestmark = needs(BINARY)

X, Y = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([5.0, 6.0, 7.0, 8.0])


class Given(torch.nn.Module):
    """An output is an input."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + y, x * y, x


class Reused(torch.nn.Module):
    """Values lie where inputs did before, the output among them."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a = x + y
        b = a * x
        c = b - a
        return c * b + c


class Overwritten(torch.nn.Module):
    """A value lies where the input did."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.sigmoid(x)
        b = torch.sin(a)
        return a + b + torch.cos(b)


def lines(what: str, *files: Path) -> list[str]:
    done = subprocess.run([BINARY, what, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def saved(program: ExecutorchProgramManager, path: Path) -> Path:
    path.write_bytes(program.buffer)
    return path


def numbers(line: str) -> list[float]:
    return [float(word) for word in line.split()]


@pytest.mark.parametrize("module", [Given(), Reused()], ids=["given", "reused"])
@pytest.mark.parametrize("plans_interface", [True, False], ids=["planned", "unplanned"])
def test_outputs_stay_while_inputs_are_set(
    module: torch.nn.Module, plans_interface: bool, tmp_path: Path
) -> None:
    size = torch.export.Dim("size", max=4)
    shapes = ({0: size}, {0: size})
    program = lower(module, (torch.zeros(3), torch.zeros(3)), shapes, plans_interface)
    (line,) = lines("outputs", saved(program, tmp_path / "program.pte"))
    expected = module(X, Y)
    expected = torch.cat(expected) if isinstance(expected, tuple) else expected
    assert numbers(line) == expected.tolist()


def test_an_input_keeps_its_value(tmp_path: Path) -> None:
    program = lower(Overwritten(), (torch.zeros(4),))
    (line,) = lines("repeated", saved(program, tmp_path / "program.pte"))
    assert numbers(line) == pytest.approx(Overwritten()(X).tolist(), abs=1e-5)


def test_a_file_that_is_too_short_is_an_invalid_argument(tmp_path: Path) -> None:
    files = [tmp_path / "empty.pte", tmp_path / "short.pte"]
    files[0].write_bytes(b"")
    files[1].write_bytes(b"short")
    assert lines("short", *files) == []
