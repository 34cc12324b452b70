"""README's code runs as it stands, and its C++ prints what its Python computes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.built import BUILD, COMMAND, ROOT, needs
from tests.readme.pages import run

PROGRAM = BUILD / "tests" / "readme" / "readme_example"


@needs(COMMAND, PROGRAM)
def test_python_exports_and_runs_and_cpp_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "model", raising=False)
    scope = run(ROOT / "README.md", tmp_path)
    torch = scope["torch"]
    model = __import__("model").example()[0]
    monkeypatch.delitem(sys.modules, "model")
    torch.testing.assert_close(scope["y"], model(torch.ones(3, 4)).detach())

    printed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    values = torch.tensor([float(v) for v in printed.split()])
    expected = model(torch.tensor([[1.0, 2, 3, 4]]))[0].detach()
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)
