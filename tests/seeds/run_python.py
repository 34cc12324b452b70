"""Runs the Python of a page as its reader would: saved to a file and started, with the names that
torch had when the page was written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torch

from tests.models.zoo import tolerance
from tests.seeds import scratch
from tests.seeds.cut import alterations, code, text
from tests.seeds.results import Failed, Result
from tests.seeds.rows import Cut, Script

MARK = "\x1e"  # printed before every cut, so that what each one prints can be told apart


def run(script: Script, folder: Path) -> list[Result]:
    """One result per cut, and one for each command line that the page has."""
    scratch.fill(folder)
    path = folder / script.name
    starts = _write(script, path)
    done = subprocess.run(
        [sys.executable, "-u", "-m", "executorch.compat", script.name],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    outputs = done.stdout.split(MARK)[1:]
    broken = len(script.cuts)
    if done.returncode != 0:
        lines = re.findall(rf'"[^"]*{re.escape(script.name)}", line (\d+)', done.stdout)
        at = int(lines[-1]) if lines else 1
        broken = max((i for i, start in enumerate(starts) if start <= at), default=0)
    results = []
    for i, cut in enumerate(script.cuts):
        if i == broken:
            reason = (done.stdout.strip().splitlines() or ["no output"])[-1]
            results.append(Result(cut.row, cut.seed, "FAIL", reason))
        elif i > broken:
            results.append(Result(cut.row, cut.seed, "FAIL", "not reached"))
        else:
            results.append(_compare(cut, outputs[i], script, folder))
            results += [_compare(fact, outputs[i], script, folder) for fact in cut.shows]
    for row in script.commands:
        named = f"python {script.name}" in text(row)
        good = named and done.returncode == 0 and (folder / script.program).exists()
        results.append(Result(row.row, row.seed, "PASS" if good else "FAIL", script.program))
    return results


def _write(script: Script, path: Path) -> list[int]:
    """Write the file; returns the line each cut starts at."""
    lines: list[str] = []
    starts = []
    for cut in script.cuts:
        lines.append(f"print({MARK!r}, end='', flush=True)")
        starts.append(len(lines) + 1)
        lines += code(cut).split("\n")
        if cut.keeps and cut.keeps != script.program:
            lines.append(f"import shutil; shutil.copy({script.program!r}, {cut.keeps!r})")
    path.write_text("\n".join(lines) + "\n")
    return starts


def _compare(cut: Cut, output: str, script: Script, folder: Path) -> Result:
    for pattern in cut.expects:
        if not re.search(pattern, output):
            return Result(cut.row, cut.seed, "FAIL", f"printed nothing like {pattern!r}")
    altered = alterations(cut)
    if not cut.keeps:
        return Result(cut.row, cut.seed, "PASS", altered)
    try:
        _run_program(script, folder, cut.keeps)
        note = "; ".join([f"{cut.keeps} agrees with eager", *([altered] if altered else [])])
        return Result(cut.row, cut.seed, "PASS", note)
    except (Failed, RuntimeError, AssertionError) as e:
        return Result(cut.row, cut.seed, "FAIL", str(e).strip().split("\n")[0])


def _run_program(script: Script, folder: Path, name: str) -> None:
    """Run what the page exported; it must do what the eager model does."""
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(folder / name).load_method("forward")
    assert method is not None
    torch.manual_seed(0)
    if script.program == "model.pte":
        inputs, expected = torch.load(folder / "model.pt", weights_only=True)
        runs, roundings = [(list(inputs), [expected])], 6
    else:
        model = scratch.eager(folder)
        longest = scratch.BLOCK_SIZE - (name == "delegated.pte")  # as the pages have it
        lengths = (8,) if script.seed == "D" else (1, 2, longest)
        roundings = scratch.roundings()
        with torch.no_grad():
            tokens = [torch.randint(0, scratch.VOCAB_SIZE, (1, n)) for n in lengths]
            runs = [([t], list(model(t))) for t in tokens]
    for inputs, expected in runs:
        found = method.execute(inputs)
        for got, want in zip(found, expected, strict=True):
            if want is None:
                if got is not None:
                    raise Failed(f"{name}: an output is {got}, expected None")
                continue
            rtol, atol = tolerance(roundings, want)
            torch.testing.assert_close(got, want.detach(), rtol=rtol, atol=atol)
