"""What tracing costs at GPT-2 small's shape and one token: ./dev bench tracing [PROGRAM]

One process loads the program once for each tracer, and runs all of them in turns, a different one
first each time: without a tracer (twice, which shows the noise), with ETDump. The profiler is
measured by `executorch profile --overhead`, in turns with runs without.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "nanogpt")]

SIDES = ("none", "none again", "etdump")


def export(path: Path) -> None:
    from model import GPT, GPTConfig

    from executorch.exir import to_edge

    torch.manual_seed(0)
    model = GPT(GPTConfig()).eval()
    dynamic = ({1: torch.export.Dim("t", max=1023)},)
    example = (torch.zeros(1, 1023, dtype=torch.long),)
    exported = torch.export.export(model, example, dynamic_shapes=dynamic)
    to_edge(exported).to_executorch().save(str(path))


def etdump(program: Path, rounds: int, folder: Path) -> dict[str, float]:
    """Medians in seconds."""
    from executorch.runtime import Runtime

    programs = {
        side: Runtime.get().load_program(program, enable_etdump=side == "etdump") for side in SIDES
    }
    methods = {side: p.load_method("forward") for side, p in programs.items()}
    inputs = (torch.zeros(1, 1, dtype=torch.long),)
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for turn in range(-3, rounds):
        for i in range(len(SIDES)):
            side = SIDES[(turn + i) % len(SIDES)]
            start = time.perf_counter()
            methods[side].execute(inputs)
            if turn >= 0:
                seconds[side].append(time.perf_counter() - start)
        # A dump of a few runs: it grows with each.
        if turn % 8 == 0:
            programs["etdump"].write_etdump_result_to_file(str(folder / "run.etdp"), None)
    return {side: statistics.median(times) for side, times in seconds.items()}


def profiler(command: Path, program: Path, rounds: int) -> tuple[float, float]:
    """Medians in seconds, without and with it."""
    call = [command, "profile", program, "--shape", "1x1", "--runs", str(rounds), "--overhead"]
    found = json.loads(subprocess.run([*call, "--json"], check=True, capture_output=True).stdout)
    return found["untraced_median"], found["traced_median"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?", help="default: exported here")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev")
    parser.add_argument("--upstream", help=argparse.SUPPRESS)  # given to every benchmark
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = Path(options.program or folder / "gpt2.pte")
        if not options.program:
            export(program)
        medians = etdump(program, options.rounds, folder)
        command = options.build / "executorch" / "extension" / "command" / "executorch"
        without, profiled = profiler(command, program, options.rounds)
    base = medians["none"]
    for side, median in medians.items():
        print(f"{side:12} {median * 1e3:8.3f} ms  {median / base - 1:+.2%}")
    print(f"{'none':12} {without * 1e3:8.3f} ms  (in the command)")
    print(f"{'profiler':12} {profiled * 1e3:8.3f} ms  {profiled / without - 1:+.2%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
