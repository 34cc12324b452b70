"""A few thousand mutants with fixed seeds, and the command's verbs on some of them. `./dev fuzz` is
the long run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.built import BUILD, COMMAND, ROOT, needs
from tests.fuzz.model_seeds import exported
from tests.fuzz.text_seeds import write_text_seeds

FUZZ = BUILD / "tests" / "fuzz"


def finish(*command: object, seconds: int = 300) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("seeds")
    made = finish(sys.executable, "-W", "ignore", ROOT / "tests" / "fuzz" / "make_seeds.py", folder)
    assert made.returncode == 0, made.stderr
    return sorted(folder.glob("*.pte"))


def test_mutants_of_programs_only_fail(seeds: list[Path], tmp_path: Path) -> None:
    options = ["--mutants", 6000, "--seed", 7, "--workers", 1, "--findings", tmp_path]
    # The time of a mutant, on a machine that does other things, is no finding here.
    done = finish(FUZZ / "program_fuzz", *options, "--slow", 60, *seeds)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "program_fuzz: 6000 mutants" in done.stdout


def test_models_whose_programs_the_long_run_damages_compute() -> None:
    names = set()
    for name, module, inputs, _ in exported():
        with torch.no_grad():
            module.eval()(*inputs)
        names.add(name)
    assert {"gpt", "vit", "convolutions_SiLU", "images"} <= names


def test_mutants_of_payloads_only_fail(seeds: list[Path]) -> None:
    payloads = [seed for seed in seeds if "delegated" in seed.name]
    done = finish(FUZZ / "delegate_fuzz", "--rounds", 6000, "--seed", 7, *payloads)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6000 variations" in done.stdout


@needs(FUZZ / "text_fuzz")
def test_damaged_texts_only_fail(tmp_path: Path) -> None:
    write_text_seeds(tmp_path)
    done = finish(FUZZ / "text_fuzz", "--rounds", 20000, "--seed", 7, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 readers, 20000 variations" in done.stdout
    assert ": 0 refused" not in done.stdout and " 0 taken" not in done.stdout


def test_every_verb_of_the_command_takes_mutants(seeds: list[Path], tmp_path: Path) -> None:
    mutants, outputs = tmp_path / "mutants", tmp_path / "outputs"
    mutants.mkdir()
    outputs.mkdir()
    options = ["--write", mutants, "--mutants", 12, "--seed", 7]
    assert finish(FUZZ / "program_fuzz", *options, *seeds).returncode == 0
    statuses = set()
    for mutant in sorted(mutants.glob("*.pte")):
        for verb in (
            ["inspect", mutant],
            ["run", mutant, "--output", outputs / "y"],
            ["profile", mutant, "--output", outputs / "profile.json"],
            ["report", mutant, "--output", outputs / "report.html"],
            ["memory", mutant, "--svg", outputs / "memory.svg"],
            ["diff", mutant, seeds[0]],
            ["strip", mutant, "--output", outputs / "stripped.pte"],
        ):
            done = finish(COMMAND, *verb, seconds=60)
            assert done.returncode in (0, 1), (verb, done.returncode, done.stderr[-2000:])
            statuses.add(done.returncode)
    assert statuses == {0, 1}
