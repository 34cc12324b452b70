"""examples/custom_linear as its README says: one operator in eager PyTorch, Python and C++."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.built import BUILD, ROOT, needs

EXAMPLE = ROOT / "examples" / "custom_linear"
FOLDER = BUILD / "examples" / "custom_linear"
LIBRARY = FOLDER / "libcustom_linear.so"

pytestmark = needs(LIBRARY)

RUN = """
import torch
from executorch.runtime import Runtime
method = Runtime.get().load_program("custom_linear.pte").load_method("forward")
print("\\n".join(f"{v:.6f}" for v in method.execute([torch.ones(2, 16)])[0].flatten()))
"""
LOAD = f"import torch; torch.ops.load_library({str(LIBRARY)!r})"
RUNTIME = "import executorch.runtime"


def python(*arguments: str, cwd: Path, **environment: str) -> str:
    paths = os.pathsep.join([str(ROOT), str(EXAMPLE)])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder with the program, and what running it printed."""
    folder = tmp_path_factory.mktemp("custom_linear")
    return folder, python(str(EXAMPLE / "export_custom_linear.py"), str(LIBRARY), cwd=folder)


def test_cpp_application_prints_what_python_printed(exported: tuple[Path, str]) -> None:
    folder, printed = exported
    runner = FOLDER / "custom_linear_runner"
    done = subprocess.run([runner], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
    assert len(printed.split()) == 8


@pytest.mark.parametrize("order", [(LOAD, RUNTIME), (RUNTIME, LOAD)], ids=["library", "runtime"])
def test_either_may_be_loaded_first(exported: tuple[Path, str], order: tuple[str, str]) -> None:
    folder, printed = exported
    assert python("-c", "\n".join((*order, RUN)), cwd=folder) == printed


def test_another_copy_of_the_runtime_is_the_one_of_the_process(
    exported: tuple[Path, str],
) -> None:
    # As when the library was built in a project of its own and is loaded first.
    folder, printed = exported
    other = folder / "other"
    other.mkdir()
    shutil.copy(ROOT / "executorch" / "lib" / "libexecutorch.so", other)
    count = "print(len({l.split()[-1] for l in open('/proc/self/maps') if 'libexecutorch' in l}))"
    code = "\n".join((LOAD, RUNTIME, RUN, count))
    assert python("-c", code, cwd=folder, LD_LIBRARY_PATH=str(other)) == printed + "1\n"


def test_without_the_library_the_operator_is_named(exported: tuple[Path, str]) -> None:
    message = r"OperatorMissing(.*\n)+.*myop::custom_linear.out, calls: 2"
    with pytest.raises(AssertionError, match=message):
        python("-c", RUN, cwd=exported[0])


def test_bad_arguments_are_errors_in_eager_mode_too(exported: tuple[Path, str]) -> None:
    wrong = "torch.ops.myop.custom_linear(torch.ones(2, 3), torch.ones(2, 4), None)"
    with pytest.raises(AssertionError, match="the kernel failed: Error::InvalidArgument"):
        python("-c", f"{LOAD}\n{wrong}", cwd=exported[0])
