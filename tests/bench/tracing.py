"""What tracing costs at GPT-2 small's shape and one token: ./dev bench tracing [PROGRAM]

Four processes in turns, a different one first each time: of a build without hooks
(EXECUTORCH_ENABLE_EVENT_TRACER=OFF), of the usual build without a tracer (twice, which shows the
noise), and of that with ETDump. Compared are lower quartiles, for what disturbs a run only adds to
it. The profiler is measured by `executorch profile --overhead`, in turns with runs without.
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
from _sides import OUTPUT, ROOT, Worker

sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "nanogpt")]

SIDES = ("no hooks", "none", "none again", "ETDump")


def export(path: Path) -> None:
    from model import GPT, GPTConfig

    from executorch.exir import to_edge

    torch.manual_seed(0)
    model = GPT(GPTConfig()).eval()
    dynamic = ({1: torch.export.Dim("t", max=1023)},)
    example = (torch.zeros(1, 1023, dtype=torch.long),)
    exported = torch.export.export(model, example, dynamic_shapes=dynamic)
    to_edge(exported).to_executorch().save(str(path))


def in_turns(runners: dict[str, Path], program: Path, options, folder: Path) -> dict:
    """Seconds of each round's calls, by side."""
    token = folder / "token.bin"
    token.write_bytes(bytes(8))
    inputs = [{"file": str(token), "dtype": "int64", "sizes": [1, 1]}]
    n = options.threads
    workers = {side: Worker([str(runners[side]), str(n)], n) for side in SIDES}
    try:
        for side, worker in workers.items():
            output = str(folder / "output.bin")
            what = {"program": str(program), "inputs": inputs, "output": output}
            worker.ask(do="open", etdump=side == "ETDump", **what)
        seconds: dict[str, list[float]] = {side: [] for side in SIDES}
        for turn in range(options.rounds):
            for i in range(len(SIDES)):
                side = SIDES[(turn + i) % len(SIDES)]
                time.sleep(0.01)  # until the threads of the one before rest
                # The first call brings the caches to where they are in the midst of a text.
                seconds[side] += workers[side].ask(do="run", calls=2)["seconds"][1:]
        return seconds
    finally:
        for worker in workers.values():
            worker.stop()


def profiler(command: Path, program: Path, rounds: int) -> tuple[float, float]:
    """Medians in seconds, without and with it."""
    call = [command, "profile", program, "--shape", "1x1", "--runs", str(rounds), "--overhead"]
    found = json.loads(subprocess.run([*call, "--json"], check=True, capture_output=True).stdout)
    return found["untraced_median"], found["traced_median"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?", help="default: exported here")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1, help="default: 1, the quietest")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev")
    parser.add_argument("--untraced", type=Path, default=ROOT / "build" / "untraced")
    parser.add_argument("--upstream", help=argparse.SUPPRESS)  # given to every benchmark
    options = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    runners = {
        side: (options.untraced if side == "no hooks" else options.build)
        / "tests/bench/bench_runner"
        for side in SIDES
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = Path(options.program or folder / "gpt2.pte")
        if not options.program:
            export(program)
        seconds = in_turns(runners, program, options, folder)
        command = options.build / "executorch" / "extension" / "command" / "executorch"
        without, profiled = profiler(command, program, options.rounds)
    base = statistics.quantiles(seconds["none"])[0]
    for side, times in seconds.items():
        low, middle, high = (1e3 * q for q in statistics.quantiles(times))
        relative = low / base * 1e-3 - 1
        print(f"{side:12} {low:8.3f} ms  {relative:+.2%}  (median {middle:.3f}, upper {high:.3f})")
    print(f"{'none':12} {without * 1e3:8.3f} ms  (in the command, medians)")
    print(f"{'profiler':12} {profiled * 1e3:8.3f} ms  {profiled / without - 1:+.2%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
