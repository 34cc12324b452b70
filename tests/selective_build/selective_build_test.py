"""An application with a program's operators only: small, complete for it, clear about the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.built import BUILD, needs

FOLDER = BUILD / "tests" / "selective_build"
SELECTED = FOLDER / "run_selected_ops_lib"
SELECTED_TYPES = FOLDER / "run_selected_types_lib"
EVERYTHING = FOLDER / "run_portable_ops_lib"

pytestmark = needs(SELECTED)


def run(binary: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary, FOLDER / program], capture_output=True, text=True)


def stripped_size(binary: Path, folder: Path) -> int:
    copy = folder / binary.name
    subprocess.run(["strip", "--strip-all", "-o", copy, binary], check=True)
    return copy.stat().st_size


@pytest.mark.parametrize("binary", [SELECTED, SELECTED_TYPES])
def test_program_runs_with_its_operators_only(binary: Path) -> None:
    done = run(binary, "selected.pte")
    assert done.returncode == 0, done.stderr
    *scaled, softmax = [float(line) for line in done.stdout.split()]
    # 3 * 1 + 200: the kernel for float rows; + 100: the one for any tensors (double; 1-d).
    assert scaled == [203, 103, 103]
    assert softmax == pytest.approx(1 / 3, rel=1e-5)


def test_operator_that_was_not_selected_is_named() -> None:
    done = run(SELECTED, "other.pte")
    assert done.returncode == 1
    assert "OperatorMissing" in done.stdout
    assert "aten::cumsum.out" in done.stderr
    assert run(EVERYTHING, "other.pte").returncode == 0


def test_element_type_that_was_not_selected_is_named() -> None:
    assert run(SELECTED, "halves.pte").stdout.split() == ["0.25"]
    done = run(SELECTED_TYPES, "halves.pte")
    assert done.returncode == 1
    assert "NotSupported" in done.stdout
    refused = "aten::add.out: argument 0 is Half; this selection of operators "
    assert f"{refused}(DTYPE_SELECTIVE_BUILD) has it for Float only" in done.stderr


def test_element_types_that_were_not_selected_are_not_linked(tmp_path: Path) -> None:
    conversions = "torch::executor::native::internal::load<double>("
    assert conversions in subprocess.check_output(["nm", "-C", SELECTED], text=True)
    assert conversions not in subprocess.check_output(["nm", "-C", SELECTED_TYPES], text=True)
    assert stripped_size(SELECTED_TYPES, tmp_path) < stripped_size(SELECTED, tmp_path)


def test_kernels_that_were_not_selected_are_not_linked(tmp_path: Path) -> None:
    symbols = subprocess.check_output(["nm", "-C", SELECTED], text=True)
    assert "torch::executor::native::softmax_out(" in symbols
    assert "torch::executor::native::convolution_out(" not in symbols
    assert "torch::executor::native::log_softmax_out(" not in symbols  # of the same source file
    small, large = (stripped_size(b, tmp_path) for b in (SELECTED, EVERYTHING))
    assert small < large / 4
