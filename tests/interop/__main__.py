"""Exchange programs with upstream's wheel and compare every result with eager PyTorch.

    python -m tests.interop [--upstream PYTHON] [--json FILE] [CASE...]

PYTHON is the interpreter of an environment with upstream's wheel, by default the value of
EXECUTORCH_UPSTREAM_PYTHON. The two packages of one name never share a process: programs, inputs
and expected outputs travel as files. Exits with 1 when a direction fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from tests.models import zoo

WORKER = Path(__file__).with_name("worker.py")
DIRECTIONS = ("ours->ours", "ours->upstream", "upstream->ours")
Results = dict[tuple[str, str], str | None]  # (case, exporting side) -> error


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.interop", description=__doc__.split("\n")[0])
    parser.add_argument("--upstream", default=os.environ.get("EXECUTORCH_UPSTREAM_PYTHON"))
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    parser.add_argument("cases", nargs="*", default=list(zoo.CASES), metavar="CASE")
    options = parser.parse_args()
    if not options.upstream:
        parser.error("no interpreter: give --upstream or set EXECUTORCH_UPSTREAM_PYTHON")
    unknown = sorted(set(options.cases) - set(zoo.CASES))
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(zoo.CASES)}")
    with tempfile.TemporaryDirectory() as folder:
        rows = exchange(options.upstream, Path(folder), options.cases)
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return int(any(error for row in rows.values() for error in row.values()))


def exchange(upstream: str, folder: Path, cases: list[str]) -> dict[str, dict[str, str | None]]:
    """Per case and direction: None, or why it failed."""
    for case in cases:
        methods = zoo.build(case)
        runs = {
            name: [(inputs.flat(), expected) for inputs, expected in method.expected()]
            for name, method in methods.items()
        }
        torch.save(runs, folder / f"{case}.pt")
    exported = {
        "ours": work(sys.executable, "export", "ours", folder, cases),
        "upstream": work(upstream, "export", "upstream", folder, cases),
    }
    ran = {
        "ours": work(sys.executable, "run", "ours", folder, cases),
        "upstream": work(upstream, "run", "upstream", folder, cases),
    }

    def verdict(case: str, direction: str) -> str | None:
        source, runtime = direction.split("->")
        error = exported[source].get((case, source), "not exported")
        if error:
            return f"export: {error}"
        return ran[runtime].get((case, source), "not run")

    return {case: {d: verdict(case, d) for d in DIRECTIONS} for case in cases}


def work(python: str, verb: str, side: str, folder: Path, cases: list[str]) -> Results:
    """What the worker reported; after a crash it starts again behind the case that crashed."""
    results: Results = {}
    left = list(cases)
    while left:
        command = [python, str(WORKER), verb, side, str(folder), *left]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]
        results |= {(row["case"], row["from"]): row["error"] for row in rows}
        if done.returncode == 0:
            break
        if not rows:
            raise SystemExit(f"interop: {' '.join(command)}\n{done.stdout}{done.stderr}")
        last = rows[-1]["case"]
        tail = done.stderr.strip().splitlines()[-1:] or ["no message"]
        results[last, rows[-1]["from"]] = f"crashed ({done.returncode}): {tail[0]}"
        left = left[left.index(last) + 1 :]
    return results


def show(rows: dict[str, dict[str, str | None]]) -> None:
    table = Table("case", *DIRECTIONS, title="Programs exchanged with upstream 1.5.1")
    for case, row in rows.items():
        table.add_row(case, *("[red]FAIL" if row[d] else "[green]PASS" for d in DIRECTIONS))
    console = Console()
    console.print(table)
    for case, row in rows.items():
        for direction, error in row.items():
            if error:
                console.print(f"{case} {direction}: {error}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
