"""WebAssembly under Node, one thread: this project beside onnxruntime-web, size and speed.

./dev browser builds what it measures, and runs it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path

import torch
from _cases import BROWSER, Case
from _report import seconds
from _sides import (
    HERE,
    OUTPUT,
    ROOT,
    Failure,
    Programs,
    Worker,
    difference,
    read_output,
    write_inputs,
)
from rich.console import Console
from rich.table import Table

SIDES = {"here": "ours", "onnxruntime-web": "onnx"}  # and the kind of their programs
PACKAGE = ROOT / "build" / "wasm" / "executorch" / "extension" / "wasm"
# What a page downloads.
OURS = ("executorch.wasm", "executorch.mjs", "runtime.mjs", "tensor.mjs")
ONNX = ("ort-wasm-simd-threaded.wasm", "ort-wasm-simd-threaded.mjs", "ort.wasm.min.mjs")
# Small, in Node; stdin and stdout have the bytes.
BROTLI = "process.stdout.write(zlib.brotliCompressSync(fs.readFileSync(0)))"


def sizes(files: list[Path]) -> list[int]:
    """Bytes of the files together: as they are, by gzip, by brotli."""
    contents = [path.read_bytes() for path in files]
    command = ["node", "-e", BROTLI]
    brotli = [subprocess.run(command, input=c, capture_output=True, check=True) for c in contents]
    return [
        sum(map(len, contents)),
        sum(len(gzip.compress(c, 9)) for c in contents),
        sum(len(done.stdout) for done in brotli),
    ]


class Sides:
    """Both, each in a process of its own, which ends with the first command that fails."""

    def __init__(self, peers_python: str, onnxruntime_web: Path, limit: float) -> None:
        self.paths = {
            "here": PACKAGE / "executorch.mjs",
            "onnxruntime-web": onnxruntime_web / "dist" / "ort.node.min.mjs",
        }
        pythons = {"own": sys.executable, "peers": peers_python}
        self.programs = Programs({k: p for k, p in pythons.items() if p and Path(p).exists()})
        self.limit = limit
        self.workers: dict[str, Worker] = {}

    def ask(self, side: str, **command: object) -> dict:
        """Raises Failure: the side is missing, has died or says so itself."""
        worker = self.workers.get(side)
        if worker is None or worker.process.poll() is not None:
            path = self.paths[side]
            if not path.exists():
                raise Failure("not on this machine")
            script = str(HERE / "_side.mjs")
            worker = self.workers[side] = Worker(["node", script, side, str(path)], 1)
        return worker.ask(self.limit, **command)

    def open(self, side: str, case: Case, inputs: list[dict], expected: torch.Tensor) -> dict:
        program = OUTPUT / SIDES[side] / f"{case.program}.{'onnx' if side != 'here' else 'pte'}"
        if program in self.programs.failures:
            raise Failure(self.programs.failures[program])
        output = str(OUTPUT / "output.bin")
        answer = self.ask(side, do="open", program=str(program), inputs=inputs, output=output)
        off = difference(read_output(answer), expected.numpy())
        if off > case.largest_difference():
            raise Failure(f"wrong: off by {off:.1e}, at most {case.largest_difference():.1e}")
        return answer

    def close(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def measure(sides: Sides, case: Case, rounds: int, turn: float) -> dict[str, dict]:
    """Of each side the median of its calls in seconds and the first call's, or an error. The
    sides take turns, after the engine has compiled what is used much."""
    inputs = write_inputs(case)
    with torch.no_grad():
        expected = case.module()(*case.inputs())
    row: dict[str, dict] = {}
    calls: dict[str, int] = {}
    for side in SIDES:
        try:
            row[side] = {"first": sides.open(side, case, inputs, expected)["seconds"], "calls": []}
            once = sides.ask(side, do="run", calls=1)["seconds"][0]
            warm = sides.ask(side, do="run", calls=max(5, min(1000, int(1 / once))))["seconds"]
            calls[side] = max(1, min(2000, int(turn / min(warm))))
        except Failure as e:
            row[side] = {"error": str(e)}
    for _ in range(rounds):
        for side, n in list(calls.items()):
            try:
                row[side]["calls"] += sides.ask(side, do="run", calls=n)["seconds"]
            except Failure as e:
                del calls[side]
                row[side] = {"error": str(e)}
    for side in calls:
        row[side]["median"] = statistics.median(row[side].pop("calls"))
    return row


def size_table(onnxruntime_web: Path) -> Table:
    table = Table("what a page downloads", "bytes", "gzip", "brotli")
    for side, folder, files in (
        ("here", PACKAGE, OURS),
        ("onnxruntime-web", onnxruntime_web / "dist", ONNX),
    ):
        paths = [folder / name for name in files]
        missing = [path.name for path in paths if not path.exists()]
        if missing:
            table.add_row(side, f"{missing[0]} is not on this machine", "-", "-")
        else:
            table.add_row(side, *(f"{n:,}" for n in sizes(paths)))
    return table


def time_table(rows: dict[str, dict[str, dict]]) -> Table:
    columns = [f"{side}{part}" for side in SIDES for part in ("", ": load and first call")]
    table = Table("case", *columns, "onnxruntime-web / here")
    for name, row in rows.items():
        cells = []
        for cell in row.values():
            if "error" in cell:
                cells += [cell["error"][:60], "-"]
            else:
                cells += [seconds(cell["median"]), seconds(cell["first"])]
        times = [cell["median"] for cell in row.values() if "median" in cell]
        table.add_row(name, *cells, f"{times[1] / times[0]:.2f}" if len(times) == 2 else "-")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev browser", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has it")
    parser.add_argument("--rounds", type=int, default=7, help="turns each side has")
    parser.add_argument("--turn", type=float, default=0.3, help="seconds a turn lasts, about")
    parser.add_argument("--limit", type=float, default=120, help="seconds a command may take")
    parser.add_argument("--json", type=Path, help="write JSON lines here")
    parser.add_argument("--peers-python", default="", help="Python that exports to ONNX")
    parser.add_argument(
        "--onnxruntime-web",
        type=Path,
        help="the folder of npm's package",
        default=ROOT / ".venv-peers" / "web" / "node_modules" / "onnxruntime-web",
    )
    options = parser.parse_args()
    if not (PACKAGE / "executorch.wasm").exists():
        print("bench: executorch.wasm is missing; ./dev browser makes it", file=sys.stderr)
        return 1
    OUTPUT.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(size_table(options.onnxruntime_web))
    sides = Sides(options.peers_python, options.onnxruntime_web, options.limit)
    cases = [case for case in BROWSER if options.only in case.name]
    rows: dict[str, dict[str, dict]] = {}
    try:
        for kind in SIDES.values():
            sides.programs.write(kind, list({c.program: c for c in cases}.values()), lambda: None)
        for case in cases:
            rows[case.name] = measure(sides, case, options.rounds, options.turn)
            console.print(f"{case.name}: {json.dumps(rows[case.name])}", markup=False)
    finally:
        sides.close()
    console.print(time_table(rows))
    if options.json:
        lines = [{"case": c, "side": s, **cell} for c, r in rows.items() for s, cell in r.items()]
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return int(any("median" not in row["here"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
