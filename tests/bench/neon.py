"""Models on 64-bit ARM, by the instructions of one thread under qemu: ./dev bench neon

Each is run twice and three times; the difference is one run. Beside it stands how many instructions
there are for each that multiplies: of four floats (`fmla`), or of 16 bytes (`sdot`), where the
processor has it. 1 would be products alone. Time is another matter: caches and the width of a
processor are not emulated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _cases import MODELS, QUANTIZED, Case
from _sides import OUTPUT, ROOT, Programs, write_inputs
from _worker import eager
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

PROCESSORS = {"cortex-a57": "NEON", "max": "with dotprod and i8mm"}  # of qemu
BUILD = ROOT / "build" / "arm64"
PACKAGES = ROOT / "build" / "arm64-packages" / "usr" / "lib" / "aarch64-linux-gnu"
DEFAULT = "gpt2 16 tokens,mobilenet_v2,resnet18,gpt2 1 tokens"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench neon",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=DEFAULT, metavar="TEXT", help="cases named like one of")
    parser.add_argument("--json", type=Path, help="write JSON lines here")
    return parser.parse_args()


def compile_plugin(folder: Path) -> Path:
    plugin = folder / "count_instructions.so"
    source = Path(__file__).with_name("count_instructions.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", plugin], check=True)
    return plugin


def instructions(plugin: Path, processor: str, program: Path, case: Case, calls: int) -> int:
    """Of the whole process: it loads, runs once, and then `calls` times."""
    count = plugin.with_suffix(".txt")
    inputs, output = write_inputs(case), str(OUTPUT / "output.bin")
    commands = [
        {"do": "open", "program": str(program), "inputs": inputs, "output": output},
        {"do": "run", "calls": calls},
    ]
    emulator = ["qemu-aarch64", "-cpu", processor, "-L", "/usr/aarch64-linux-gnu"]
    emulator += ["-E", f"LD_LIBRARY_PATH={PACKAGES}"]
    emulator += ["-plugin", str(plugin), "-d", "plugin", "-D", str(count)]
    done = subprocess.run(
        [*emulator, BUILD / "tests" / "bench" / "bench_runner", "1"],
        input="".join(json.dumps(command) + "\n" for command in commands),
        capture_output=True,
        text=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != 2 or any("error" in answer for answer in answers):
        raise RuntimeError(f"{case.name}: {done.stderr.strip()} {done.stdout.strip()}")
    return int(count.read_text())


def measure(case: Case, program: Path, plugin: Path) -> dict:
    products = eager({"case": case.name}, 1)[1]["flops"] // 2
    row: dict = {"case": case.name, "multiply_adds": products}
    for processor in PROCESSORS:
        one, two = (instructions(plugin, processor, program, case, n) for n in (1, 2))
        lanes = 16 if case.quantize else 4
        row[processor] = {"instructions": two - one, "ratio": (two - one) / (products / lanes)}
    return row


def main() -> int:
    options = parse()
    wanted = options.only.split(",")
    cases = [c for c in (*MODELS, *QUANTIZED) if any(c.name.startswith(name) for name in wanted)]
    if not cases:
        print(f"neon: no case is named like {options.only!r}", file=sys.stderr)
        return 2
    programs = Programs({"own": sys.executable})
    table = Table(title="Millions of instructions of a run, and for each that multiplies")
    for name in ("case", "10^6 multiply-adds", *PROCESSORS.values()):
        table.add_column(name, justify="right" if table.columns else "left")
    rows = []
    with Progress(transient=True) as progress, tempfile.TemporaryDirectory() as folder:
        task = progress.add_task("programs", total=len({c.program for c in cases}))
        programs.write("ours", cases, lambda: progress.advance(task))
        plugin = compile_plugin(Path(folder))
        task = progress.add_task("runs under qemu", total=len(cases))
        for case in cases:
            program = OUTPUT / "ours" / f"{case.program}.pte"
            if program in programs.failures:
                print(f"{case.name}: {programs.failures[program]}", file=sys.stderr)
                return 1
            row = measure(case, program, plugin)
            rows.append(row)
            cells = [
                f"{row[p]['instructions'] / 1e6:.0f} ({row[p]['ratio']:.2f})" for p in PROCESSORS
            ]
            table.add_row(case.name, f"{row['multiply_adds'] / 1e6:.0f}", *cells)
            progress.advance(task)
    Console().print(table)
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
