"""README's snippets run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "dev" / "tests" / "readme" / "readme_example"


def test_python_exports_and_runs_and_cpp_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(snippets) == 3
    (tmp_path / "model.py").write_text(snippets[0])
    scope: dict = {"__name__": "__main__"}
    for code in snippets:
        exec(code, scope)
    torch = scope["torch"]
    ones = scope["method"].execute([torch.ones(3, 4)])[0]
    expected = scope["program"].module()(torch.ones(3, 4))
    torch.testing.assert_close(ones, expected)

    parity = [sys.executable, "-m", "executorch.devtools.parity", "model.pte", "model.py:example"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(parity, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

    if not PROGRAM.exists():
        pytest.skip("readme_example is not built; ./dev build")
    printed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout
    values = torch.tensor([float(v) for v in printed.split()])
    expected = scope["program"].module()(torch.tensor([[1.0, 2, 3, 4]]))[0]
    torch.testing.assert_close(values, expected, atol=1e-5, rtol=1e-5)
