"""The C interface on programs, and its examples in C and Rust against an installed package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch._higher_order_ops.map import map as torch_map

from executorch.extension.pybindings.misuse_test import HandedOn, lower
from executorch.runtime import Runtime
from tests.built import BUILD, ROOT, needs
from tests.incremental.models import Model
from tests.llm.generate_test import LETTERS, greedy, made, program_of

FOLDER = BUILD / "executorch" / "extension" / "c_api"
LINEAR = BUILD / "tests" / "selective_build" / "delegated.pte"

pytestmark = [
    needs(FOLDER / "c_api_test", LINEAR),
    pytest.mark.xdist_group("install"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A language model whose words are letters, and its tokenizer."""
    folder = tmp_path_factory.mktemp("text")
    model, tokenizer = folder / "text.pte", folder / "vocab.json"
    model.write_bytes(program_of(made(Model), incremental=True))
    words = [*LETTERS, "<|endoftext|>"]
    tokenizer.write_text(json.dumps({word: i for i, word in enumerate(words)}))
    return model, tokenizer


class AddsInLoop(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None, what: str) -> torch.Tensor:
        return torch_map(lambda row: row + 1, x)


def results_for(x: torch.Tensor) -> list[float]:
    program = Runtime.get().load_program(LINEAR)
    return program.load_method("forward").execute([x])[0].flatten().tolist()


def printed(command: list[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_c99_runs_programs_and_texts(text: tuple[Path, Path], tmp_path: Path) -> None:
    size = torch.export.Dim("size", max=4)
    handed_on = lower(HandedOn(), (torch.zeros(3),), ({0: size},), plans_interface=False)
    handed_on.save(str(tmp_path / "handed_on.pte"))
    loop = lower(AddsInLoop(), (torch.zeros(50, 4), None, "one"))
    loop.save(str(tmp_path / "loop.pte"))
    programs = [tmp_path / "handed_on.pte", tmp_path / "loop.pte"]
    command = [FOLDER / "c_api_test", LINEAR, *text, *programs]
    numbers, added = printed(command).splitlines()
    expected = results_for(torch.tensor([[1.0, 2.0, 3.0]]))
    assert [float(x) for x in numbers.split()] == pytest.approx(expected, abs=1e-6)
    assert added == greedy(made(Model), "hello", 8)


def test_the_library_shows_its_functions_and_nothing_else() -> None:
    library = FOLDER / "libexecutorch_c.so"
    names = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True).split("\n")
    found = {line.split()[-1] for line in names if line}
    header = (ROOT / "executorch" / "extension" / "c_api" / "executorch.h").read_text()
    assert found == set(re.findall(r"EXECUTORCH_C_API[^;]*?\b(executorch_\w+)\(", header))


def test_example_in_c(prefix: Path, tmp_path: Path, text: tuple[Path, Path]) -> None:
    source = ROOT / "examples" / "c"
    printed(["cmake", "-S", source, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    printed(["ninja", "-C", tmp_path])
    binary = tmp_path / "run_program"
    found = printed([binary, LINEAR]).removeprefix("output 0: ").split()
    assert [float(x) for x in found] == pytest.approx(results_for(torch.zeros(1, 3)), rel=1e-5)
    assert printed([binary, *text, "hello"]).strip() == greedy(made(Model), "hello", 20)
    done = subprocess.run([binary, LINEAR, "backward"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "executorch_method_load: the program has no method backward; it has: forward (NotFound)\n"
    )


def test_example_in_rust(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo")
    command = ["cargo", "build", "--quiet", "--offline", "--locked"]
    manifest = ROOT / "examples" / "rust" / "Cargo.toml"
    environment = os.environ | {"EXECUTORCH_PREFIX": str(prefix)}
    subprocess.run(
        [*command, "--manifest-path", manifest, "--target-dir", tmp_path],
        env=environment,
        check=True,
    )
    binary = tmp_path / "debug" / "run_program"
    found = printed([binary, LINEAR]).removeprefix("output 0: ").split()
    assert [float(x) for x in found] == pytest.approx(results_for(torch.zeros(1, 3)), rel=1e-5)
    done = subprocess.run([binary, LINEAR, "backward"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no method backward; it has: forward (NotFound)" in done.stderr
