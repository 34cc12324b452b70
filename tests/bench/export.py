"""Export time, memory and file size for GPT-2 small's shape, this project beside upstream.

12 layers, 768 wide, vocabulary 50257, block 1024, random float32 weights, dynamic sequence length,
portable flow; each side in a process of its own, one after the other on the same machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

CHILD = Path(__file__).with_name("_export_child.py")
LOAD_TIME = Path(__file__).resolve().parents[2] / "build" / "dev" / "tests" / "bench" / "load_time"
OURS = ("import executorch.exir", "to_edge", "to_executorch", "write")


def measure(python: str, folder: str) -> dict:
    """One export in a fresh process, then one load by this project's runtime in another.

    Raises CalledProcessError; the output of the failed process is on stderr.
    """
    path = Path(folder, "gpt2.pte")
    command = [python, str(CHILD), str(path)]
    result = json.loads(_output(command, folder).splitlines()[-1])
    result["load"] = json.loads(_output([str(LOAD_TIME), str(path)], folder))
    path.unlink()
    return result


def _output(command: list[str], folder: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def derived(result: dict) -> dict:
    """The figures that are compared: seconds after torch.export, memory beyond torch's own."""
    after = sum(result["seconds"][step] for step in OURS)
    beyond = result["peak_bytes"] - result["peak_torch_bytes"]
    return {
        "after torch.export, s": after,
        "peak, MB": result["peak_bytes"] / 1e6,
        "peak beyond torch's, / weights": beyond / result["weight_bytes"],
        "file, MB": result["file_bytes"] / 1e6,
        "load of that file here, ms": result["load"]["seconds"] * 1e3,
        "resident after the load, MB": result["load"]["resident_bytes"] / 1e6,
    }


def rows(result: dict) -> dict:
    return {f"{k}, s": v for k, v in result["seconds"].items()} | derived(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", required=True, help="Python with upstream's wheel")
    parser.add_argument("--json", type=Path, help="write the raw figures here")
    args = parser.parse_args()
    sides = {"here": sys.executable, "upstream": args.upstream}
    console = Console()
    results = {}
    died = []
    with tempfile.TemporaryDirectory() as folder:
        for side, python in sides.items():
            try:
                with console.status(f"exporting with {side}"):
                    results[side] = measure(python, folder)
            except subprocess.CalledProcessError as e:
                died.append(side)
                console.print(f"{side} died: {e}", style="red", markup=False)
                continue
            after = derived(results[side])["after torch.export, s"]
            console.print(f"{side}: {after:.1f} s after torch.export")
            if args.json:
                args.json.write_text(json.dumps(results, indent=2) + "\n")
    if results:
        console.print(table_of(results))
    return int("here" in died)


def table_of(results: dict[str, dict]) -> Table:
    """One column for each side that gave an answer, and the ratio where both did."""
    table = Table("", *results, "here / upstream", title="GPT-2 small's shape")
    columns = {side: rows(result) for side, result in results.items()}
    for name in next(iter(columns.values())):
        values = [column[name] for column in columns.values()]
        ratio = f"{values[0] / values[1]:.3f}" if len(values) == 2 and values[1] else "-"
        table.add_row(name, *(f"{value:.3f}" for value in values), ratio)
    return table


if __name__ == "__main__":
    sys.exit(main())
