"""Language models with a memory: a token at several contexts, and whole prompts, beside peers.

Ours is the user's own loop: each call is given all tokens so far. Keys and values are float32 in
the fp32 rows, else float16 here and in llama.cpp. Sides take turns; each waits until the threads
of the one before no longer spin. The limit is every weight of a product, every key and every value,
read once at the bandwidth that is measured right after our turn, the median of 8 readings of more
than the last cache holds, 1 GiB at most; our share of it is the median over the turns. A side whose
logits are not the model's, within what its format explains, has no times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from _llm_models import BITS, SHAPES, check_tokens, least_bytes
from _report import seconds
from _sides import HERE, OUTPUT, ROOT, Failure, Worker, difference
from rich.console import Console

FLOAT_DIFFERENCE = 5e-3  # llama.cpp looks GELU up in a table of float16
# Side: what answers, whose Python, which file.
SIDES = {
    "here": ("here", "own", "ours"),
    "eager": ("eager", "own", None),
    "ONNX Runtime": ("onnxruntime", "peers", "onnx"),
    "OpenVINO": ("openvino", "peers", "whole onnx"),
    "llama.cpp": ("llamacpp", "peers", "gguf"),
}
SUFFIXES = {"ours": "pte", "onnx": "onnx", "gguf": "gguf", "expected": "expected"}


def numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench llm", description=__doc__)
    parser.add_argument("--models", default="gpt2", help=f"of {','.join(SHAPES)}")
    parser.add_argument("--formats", default=",".join(BITS), help="default: %(default)s")
    parser.add_argument("--peers", default=",".join(SIDES), help="default: %(default)s")
    parser.add_argument("--contexts", type=numbers, default=[16, 128, 512, 1000], metavar="N,N")
    parser.add_argument("--prompts", type=numbers, default=[128, 512, 1000], metavar="N,N")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7, help="turns each side has")
    parser.add_argument("--tokens", type=int, default=12, help="of one turn")
    parser.add_argument("--json", type=Path, help="write JSON lines here")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev", help="CMake's folder")
    parser.add_argument("--upstream", default="", help=argparse.SUPPRESS)
    parser.add_argument("--peers-python", default="", help="Python with the other peers")
    options = parser.parse_args()
    for given, known in (
        (options.models, SHAPES),
        (options.formats, BITS),
        (options.peers, SIDES),
    ):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


class Bench:
    """The sides of one model in one format: processes, and what became of them."""

    def __init__(self, options: argparse.Namespace, model: str, form: str) -> None:
        self.options, self.model, self.form = options, model, form
        self.pythons = {"own": sys.executable, "peers": options.peers_python}
        self.workers: dict[str, Worker] = {}
        self.failed: dict[str, str] = {}

    def open(self, side: str) -> None:
        kind, environment, file = SIDES[side]
        try:
            if kind == "eager" and self.form != "fp32":
                raise Failure("no such kernels")
            program = self.program(environment, file) if file else None
            threads = str(self.options.threads)
            runner = self.options.build / "tests" / "bench" / "bench_runner"
            command = [str(runner), threads]
            if kind != "here":
                command = [self.python(environment), str(HERE / "_llm_worker.py"), kind, threads]
            if program is not None:
                _forget_cached(program)
            self.workers[side] = Worker(command, self.options.threads)
            self.ask(side, do="open", shape=self.model, format=self.form, program=str(program))
            self.check(side, program)
        except Failure as e:
            self.failed[side] = str(e)

    def check(self, side: str, program: Path | None) -> None:
        """Raises Failure where the logits after one text are others than eager's: by more than
        float rounding, or twice as far as those of eager with rounded weights."""
        shape = SHAPES[self.model]
        exact, rounded = np.fromfile(self.program("own", "expected"), np.float32).reshape(2, -1)
        if side == "here":
            file = OUTPUT / "input0.bin"
            check_tokens(shape).numpy().tofile(file)
            text = {"file": str(file), "dtype": "int64", "sizes": list(check_tokens(shape).shape)}
            command = {"do": "open", "program": str(program), "inputs": [text]}
        else:
            command = {"do": "check"}
        self.ask(side, **command, output=str(OUTPUT / "output.bin"))
        off = difference(np.fromfile(OUTPUT / "output.bin", np.float32), exact)
        if off > max(2 * difference(rounded, exact), FLOAT_DIFFERENCE):
            raise Failure(f"wrong: off by {off:.1e}")

    def python(self, environment: str) -> str:
        python = self.pythons[environment]
        if not python or not Path(python).exists():
            raise Failure("not on this machine")
        return python

    def program(self, environment: str, kind: str) -> Path:
        form = "fp32" if kind.startswith("whole") else self.form  # it compresses weights itself
        kind = kind.removeprefix("whole ")
        file = OUTPUT / "llm" / f"{self.model}-{form}.{SUFFIXES[kind]}"
        file.parent.mkdir(parents=True, exist_ok=True)
        names = ["models", "llamacpp" if kind == "gguf" else "worker"]
        sources = [HERE / f"_llm_{name}.py" for name in names]
        if kind == "ours":
            sources += [*(ROOT / "executorch" / "exir").rglob("*.py")]
        if file.exists() and file.stat().st_mtime > max(s.stat().st_mtime for s in sources):
            return file
        command = [self.python(environment), str(HERE / "_llm_worker.py"), "write", kind]
        command += [self.model, form, str(file)]
        log = file.with_suffix(".log")
        with log.open("w") as out:
            env = {"PYTHONPATH": str(ROOT)} if environment == "own" else {}
            done = subprocess.run(command, stdout=out, stderr=out, env={**_environment(), **env})
        if done.returncode:
            lines = log.read_text().strip().splitlines() or ["no message"]
            raise Failure(f"export: {lines[-1]}")
        return file

    def ask(self, side: str, **command: Any) -> dict:
        return self.workers[side].ask(120, **command)

    def time(self, side: str, samples: list[float], **command: Any) -> None:
        """Add the samples of one command; a side that fails is left out from here on."""
        if side in self.failed:
            return
        try:
            samples += self.ask(side, **command)["seconds"]
            self.workers[side].wait_until_idle()
        except Failure as e:
            self.failed[side] = str(e)

    def close(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


def _forget_cached(file: Path) -> None:
    """Has the file read anew by whoever opens it next: what was written or read in small pieces
    stays in small pages, which no mapping can make huge ones."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bandwidth(options: argparse.Namespace) -> float:
    command = [str(options.build / "tests" / "bench" / "machine_limits"), str(options.threads)]
    return float(json.loads(subprocess.check_output(command, text=True))["median_read"])


def measure(bench: Bench, what: str, n: int) -> dict[str, Any]:
    """A row: sides take turns, so that a slow minute is slow for all."""
    options = bench.options
    sides = options.peers.split(",")
    samples: dict[str, list[float]] = {side: [] for side in sides}
    reads: list[float] = []
    shares: list[float] = []
    least = least_bytes(SHAPES[bench.model], bench.form, n)
    if what == "decode":
        for side in sides:
            bench.time(side, [], do="prefill", tokens=n)
    for _ in range(options.rounds if what == "decode" else 3):
        for side in sides:
            count = min(options.tokens, SHAPES[bench.model].block - 1 - n)
            command = {"do": what, "tokens": count if what == "decode" else n}
            turn: list[float] = []
            bench.time(side, turn, **command)
            samples[side] += turn
            if side == "here" and turn and what == "decode":
                reads.append(bandwidth(options))
                shares.append(statistics.median(turn) / (least / reads[-1]))
    row: dict[str, Any] = {"model": bench.model, "format": bench.form, "what": what, "tokens": n}
    if reads:
        row["read"] = statistics.median(reads)
        row["bytes"] = least
        row["limit"] = least / row["read"]
        row["of_limit"] = statistics.median(shares)
    for side in sides:
        failure = bench.failed.get(side)
        times = samples[side]
        row[side] = {"error": failure} if failure else _summary(times)
    return row


def _summary(times: list[float]) -> dict[str, float]:
    return {"median": statistics.median(times), "min": min(times), "calls": len(times)}


def line(row: dict[str, Any], sides: list[str]) -> str:
    own = row.get("here", {}).get("median")
    cells = []
    for side in sides:
        cell = row[side]
        if "error" in cell:
            cells.append(f"{side}: {cell['error'][:60]}")
        elif own and side != "here":
            cells.append(f"{side} {seconds(cell['median'])} ({cell['median'] / own:.2f}x)")
        else:
            cells.append(f"{side} {seconds(cell['median'])}")
    limit = row.get("limit")
    share = f"limit {seconds(limit)}" if limit else ""
    share += f" (here {row['of_limit']:.2f} of it)" if limit and own else ""
    text = f"{row['model']} {row['format']} {row['what']} {row['tokens']:5}: "
    return text + "; ".join([*cells, share]).rstrip("; ")


def main() -> int:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 220, highlight=False)
    sides = options.peers.split(",")
    console.print(f"{options.threads} threads; {bandwidth(options) / 1e9:.1f} GB/s")
    found = []
    for model in options.models.split(","):
        for form in options.formats.split(","):
            bench = Bench(options, model, form)
            try:
                for side in sides:
                    bench.open(side)
                plan = [("decode", n) for n in options.contexts]
                for what, n in [*plan, *(("prefill", n) for n in options.prompts)]:
                    found.append(measure(bench, what, n))
                    console.print(line(found[-1], sides), markup=False)
                    if options.json:
                        text = "".join(json.dumps(row) + "\n" for row in found)
                        options.json.write_text(text)
            except KeyboardInterrupt:
                return 1
            finally:
                bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
