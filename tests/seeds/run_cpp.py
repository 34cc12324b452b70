"""Builds and runs the C++ project of a page: its sources, its CMakeLists.txt, its commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import torch

from tests.seeds import run_python, scratch
from tests.seeds.cut import ROOT, alterations, code, text
from tests.seeds.results import Failed, Result
from tests.seeds.rows import Cut, Project

LAUNCHER = Path(__file__).with_name("launcher.sh")
TOOLCHAIN = Path(__file__).with_name("toolchain.cmake")


def run(project: Project, top: Path, program: Path) -> list[Result]:
    """`top` is emptied; `program` is what the page's export script wrote."""
    shutil.rmtree(top, ignore_errors=True)
    folder = top / project.folder
    scratch.fill(folder)
    checkout = _checkout(project, folder)
    checkout.parent.mkdir(parents=True, exist_ok=True)
    checkout.symlink_to(ROOT)
    shutil.copy(program, folder / "nanogpt.pte")
    for name in project.takes:
        shutil.copy(program.parent / name, folder / name)
    (folder / "export_nanogpt.py").write_text("# the page's script, which wrote nanogpt.pte\n")
    (folder / project.source).write_text("".join(code(cut) for cut in project.source_cuts))
    (folder / "CMakeLists.txt").write_text("".join(code(cut) for cut in project.cmake_cuts))

    results: dict[int, Result] = {}
    parts = (*project.source_cuts, *project.cmake_cuts)
    try:
        for commands in project.builds:
            console = _build_and_run(project, commands, folder)
            _check_console(project, console, folder)
        status, note = "PASS", ""
    except Failed as e:
        status, note = "FAIL", str(e)
    commands = [cut for build in project.builds for cut in build]
    for cut in (*parts, *commands, project.console):
        shown = "; ".join(part for part in (project.name, alterations(cut)) if part)
        results[cut.row] = Result(cut.row, cut.seed, status, note or shown)
    for cut in project.files:
        results[cut.row] = _check_files(cut, folder)
    parsed = run_python.run(project.parses, folder) if project.parses else []
    return [*results.values(), *parsed]


def _checkout(project: Project, folder: Path) -> Path:
    """Where the page has the checkout, spelled as CMake spells it."""
    return Path(os.path.normpath(folder / project.executorch))


def build_environment(checkout: Path) -> dict[str, str]:
    """For CMake, in a project that has the checkout at `checkout`."""
    environment = os.environ | {
        f"CMAKE_{language}_COMPILER_LAUNCHER": str(LAUNCHER) for language in ("C", "CXX")
    }
    environment |= {"SEEDS_LINK": str(checkout), "SEEDS_ROOT": str(ROOT)}
    environment["CMAKE_TOOLCHAIN_FILE"] = str(TOOLCHAIN)
    if shutil.which("ninja"):
        environment["CMAKE_GENERATOR"] = "Ninja"
    return environment


def _build_and_run(project: Project, commands: tuple[Cut, ...], folder: Path) -> str:
    """The page's commands in one shell; returns what the last one printed."""
    *build, last = "\n".join(text(cut) for cut in commands).split("\n")
    environment = build_environment(_checkout(project, folder))
    script = "set -e\n" + re.sub(r"-j\d+", f"-j{os.cpu_count()}", "\n".join(build))
    built = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    (folder / "build.log").write_text(built.stdout + built.stderr)
    if built.returncode != 0:
        lines = (built.stdout + built.stderr).splitlines()
        errors = [
            line for line in lines if re.search(r"[Ee]rror\b[: ]|undefined|cannot find", line)
        ]
        raise Failed(f"build: {(errors or lines[-1:] or ['no output'])[0].strip()}")
    ran = subprocess.run(
        ["bash", "-c", last],
        cwd=folder,
        input=scratch.PROMPT + "\n",
        capture_output=True,
        text=True,
    )
    if ran.returncode != 0:
        raise Failed(f"{last}: exit code {ran.returncode}: {ran.stderr.strip()[-300:]}")
    return ran.stdout


def _check_console(project: Project, console: str, folder: Path) -> None:
    """It prints what the page shows, with the continuation that the eager model gives."""
    shown = text(project.console).split("\n")[0].split(":")[0]
    if not console.startswith(shown):
        raise Failed(f"printed {console[:60]!r}, expected it to start with {shown!r}")
    expected = scratch.decode(_said(project, folder)[-project.n_tokens :])
    if expected not in console:
        raise Failed(f"printed {console!r}, expected the continuation {expected!r}")


def _said(project: Project, folder: Path) -> list[int]:
    """The tokens of the prompt and what the eager model, or the quantized one, continues with."""
    if project.program[1] == "quantized.pte":
        return json.loads((folder / "quantized.json").read_text())
    tokens = list(scratch.PROMPT_TOKENS)
    tokens += [0] * (project.prompt_tokens - len(tokens))
    window = project.prompt_tokens or scratch.BLOCK_SIZE
    model = scratch.eager(folder)
    with torch.no_grad():
        for _ in range(project.n_tokens):
            logits, _ = model(torch.tensor([tokens[-window:]]))
            tokens.append(int(logits[0, -1].argmax()))
    return tokens


def _check_files(cut: Cut, folder: Path) -> Result:
    listed = re.findall(r"[\w.]+\.\w+", text(cut))
    missing = [name for name in listed if not (folder / name).exists()]
    return Result(cut.row, cut.seed, "FAIL" if missing else "PASS", ", ".join(missing))
