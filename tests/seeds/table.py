"""Every row of the five pages and what became of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from tests.seeds import rows, run_cpp, run_custom, run_python
from tests.seeds.cut import ROOT, text
from tests.seeds.results import Result

WORK = ROOT / "build" / "seeds"


def shell() -> list[Result]:
    results = []
    for cut in rows.SHELL:
        folder = WORK / f"shell-{cut.row}"
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        folder.mkdir(parents=True)
        done = subprocess.run(
            ["bash", "-ec", text(cut)], cwd=folder, capture_output=True, text=True
        )
        status = "FAIL" if done.returncode else "PASS"
        results.append(Result(cut.row, cut.seed, status, done.stderr.strip()))
    return results


def script(seed: str) -> list[Result]:
    chosen = next(s for s in rows.SCRIPTS if s.seed == seed)
    return run_python.run(chosen, WORK / f"python-{seed}")


def project(chosen: rows.Project) -> list[Result]:
    """Needs the program that `script` of the same seed keeps."""
    seed, name = chosen.program
    program = WORK / f"python-{seed}" / name
    if not all((program.parent / wanted).exists() for wanted in (name, *chosen.takes)):
        script(seed)
    return run_cpp.run(chosen, WORK / _folder(chosen), program)


def _folder(chosen: rows.Project) -> str:
    number = [p for p in rows.PROJECTS if p.seed == chosen.seed].index(chosen) + 1
    return f"cpp-{chosen.seed}{number}"


def custom(seed: str) -> list[Result]:
    chosen = next(c for c in rows.CUSTOM_OPERATORS if c.seed == seed)
    return run_custom.run(chosen, WORK / f"custom-{seed}")


GROUPS: dict[str, Callable[[], list[Result]]] = {
    "shell": shell,
    **{f"python-{s.seed}": lambda seed=s.seed: script(seed) for s in rows.SCRIPTS},
    **{_folder(p): lambda p=p: project(p) for p in rows.PROJECTS},
    **{f"cpp-custom-{c.seed}": lambda seed=c.seed: custom(seed) for c in rows.CUSTOM_OPERATORS},
}


def run_group(name: str) -> list[Result]:
    """A group in a process of its own: imports and PyTorch's generator are not shared."""
    return GROUPS[name]()


def not_run() -> list[Result]:
    """Rows no group covers, each with its reason."""
    return [
        Result(row, "", *reason.split(": ")[:1], reason.partition(": ")[2])
        for reason, members in rows.NOT_RUN.items()
        for row in members
    ]
