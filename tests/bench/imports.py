"""How long imports take, each in a fresh process, median of several; optional packages hidden."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

HIDE = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"hidden for the measurement: {{name}}", name=name)
sys.meta_path.insert(0, Hidden())
{before}
import time
start = time.perf_counter()
{measured}
print(time.perf_counter() - start)
"""
OPTIONAL = ("torchao", "pandas", "tabulate", "transformers", "safetensors", "rich")
ALONE = ("torch", "numpy", *OPTIONAL)
CASES = {  # name: (what is measured, what is imported before, what is hidden)
    "executorch.runtime, torch and numpy absent": ("import executorch.runtime", "", ALONE),
    "executorch.exir beyond torch": ("import executorch.exir", "import torch", OPTIONAL),
    "... and its to_edge": ("from executorch.exir import to_edge", "import torch", OPTIONAL),
}
UPSTREAM = {
    "executorch.exir beyond torch": ("import executorch.exir", "import torch", ()),
}


def measure(python: str, case: tuple[str, str, tuple[str, ...]], runs: int) -> float:
    """Median seconds of the measured import."""
    measured, before, hidden = case
    code = HIDE.format(hidden=set(hidden), before=before, measured=measured)
    done = [
        subprocess.run([python, "-c", code], cwd="/", check=True, capture_output=True, text=True)
        for _ in range(runs)
    ]
    return statistics.median(float(d.stdout.split()[-1]) for d in done)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", required=True, help="Python with upstream's wheel")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    table = Table("import, s", "here", "upstream")
    figures = {}
    with Console().status("importing"):
        for name, case in CASES.items():
            here = measure(sys.executable, case, args.runs)
            other = UPSTREAM.get(name)
            upstream = measure(args.upstream, other, args.runs) if other else None
            figures[name] = {"here": here, "upstream": upstream}
            table.add_row(name, f"{here:.4f}", "-" if upstream is None else f"{upstream:.3f}")
    Console().print(table)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
