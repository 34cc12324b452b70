"""What the wheel promises and a checkout can show; `./dev wheel` builds one and tries it."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

import executorch
from executorch.examples.__main__ import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NATIVE = (
    "executorch.exir._native",
    "executorch.devtools._native",
    "executorch.backends.xnnpack.serialization._native",
    "executorch.extension.pybindings._C",
    "executorch.extension.llm.tokenizers._tokenizers",
    "executorch.extension.llm.runner._llm_runner",
)


@pytest.mark.parametrize("name", NATIVE)
def test_the_stub_names_what_the_module_has(name: str) -> None:
    module = importlib.import_module(name)
    stub = ROOT / f"{name.replace('.', '/')}.pyi"
    stated = set()
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            stated.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            stated.add(node.target.id)
    there = {each for each in vars(module) if not each.startswith("__")}
    types = {
        each for each in stated if each.startswith("_") and each not in there
    }  # of annotations
    assert stated - types == there


def test_the_version_is_said_once() -> None:
    assert PROJECT["version"] == executorch.__version__
    assert f"VERSION {executorch.__version__} " in (ROOT / "CMakeLists.txt").read_text()


def test_running_programs_needs_no_other_package() -> None:
    assert PROJECT["dependencies"] == []
    assert {"export", "quantization", "devtools", "llm", "all"} <= set(
        PROJECT["optional-dependencies"]
    )


@pytest.mark.parametrize("order", [("executorch-1.5.1", "executorch_compact-1.5.1"), ()])
def test_importing_beside_upstreams_distribution_warns(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    (tmp_path / "executorch").mkdir()
    shutil.copy(ROOT / "executorch" / "__init__.py", tmp_path / "executorch")
    for name in order or ("executorch_compact-1.5.1", "numpy-2.0"):
        (tmp_path / f"{name}.dist-info").mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import executorch; print(executorch.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(tmp_path))
    warned = "holds both executorch-compact and executorch-1.5.1" in done.stderr
    assert warned == bool(order), done.stderr


def test_the_command_of_an_installation_without_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from executorch.extension.command import launch

    monkeypatch.setattr(launch, "PROGRAM", tmp_path / "executorch")
    with pytest.raises(SystemExit, match="is missing"):
        launch.main()


@pytest.mark.parametrize("verb", ["export", "parity"])
def test_verbs_that_need_pytorch_say_so(verb: str, tmp_path: Path) -> None:
    program = tmp_path / "executorch"
    program.touch()
    code = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['executorch', sys.argv[1]]\n"
        "from pathlib import Path\n"
        "from executorch.extension.command import launch\n"
        f"launch.PROGRAM = Path({str(program)!r})\n"
        "launch.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, verb], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"{verb} needs PyTorch" in done.stderr
    assert "executorch-compact[export]" in done.stderr


@pytest.mark.parametrize(
    "statement", ["import executorch.export", "from executorch.exir import to_edge"]
)
def test_packages_that_need_pytorch_say_what_to_install(statement: str) -> None:
    code = f"import sys; sys.modules['torch'] = None\n{statement}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "needs PyTorch" in done.stderr and "executorch-compact[export]" in done.stderr


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_an_example_is_copied_once(name: str, tmp_path: Path) -> None:
    """From an installation, of which the checkout is no part."""
    package = tmp_path / "site-packages" / "executorch"
    folders = {"examples": ROOT / "executorch" / "examples", f"examples/{name}": ROOT / "examples"}
    folders["extension/wasm"] = ROOT / "executorch" / "extension" / "wasm"
    for place, source in folders.items():
        own = source / name if place.endswith(name) else source
        files = [*own.glob("*.[!c]*")]
        (package / place).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, package / place)
    command = [sys.executable, "-S", package / "examples" / "__main__.py", name, "copied"]

    def copied() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    expected = {file.name for file in (ROOT / "examples" / name).iterdir() if file.is_file()}
    if name == "browser":
        done = copied()
        assert done.returncode == 1 and "executorch.wasm is missing" in done.stderr
        assert not (tmp_path / "copied").exists()
        (package / "extension" / "wasm" / "executorch.wasm").write_bytes(b"\0asm")
        expected |= {"executorch.mjs", "runtime.mjs", "tensor.mjs", "executorch.wasm"}
    assert copied().returncode == 0
    assert {file.name for file in (tmp_path / "copied").iterdir()} == expected
    again = copied()
    assert again.returncode == 1 and "already" in again.stderr


def test_examples_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "executorch.examples"]
    for arguments in (["none", "folder"], ["ray"], ["ray", "folder", "more"]):
        done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and ", ".join(EXAMPLES) in done.stderr
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert listed.returncode == 0 and all(name in listed.stdout for name in EXAMPLES)


def test_exporting_needs_what_the_extra_export_brings(tmp_path: Path) -> None:
    """The others of the package's requirements are not imported by its command line."""
    (tmp_path / "model.py").write_text(
        "import torch\ndef example():\n    return torch.nn.Linear(4, 2).eval(), (torch.ones(2, 4),)"
    )
    others = ("pandas", "matplotlib", "yaml", "torchao", "safetensors", "transformers")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({others}))\n"
        "import runpy; sys.argv = ['export', 'model.py:example', '--parity', '-o', 'model.pte']\n"
        "runpy.run_module('executorch.export', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "model.pte").stat().st_size > 0
