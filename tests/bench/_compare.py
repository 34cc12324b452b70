"""Cases on all sides: one at a time, rounds interleaved, outputs compared with eager first."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import _report
from _cases import Case
from _sides import (
    HERE,
    OUTPUT,
    ROOT,
    SIDES,
    Failure,
    Programs,
    Side,
    Worker,
    difference,
    read_output,
    write_inputs,
)
from rich.console import Console
from rich.progress import Progress

SETTLE = 0.05  # seconds until the last side's threads sleep


def parse(title: str, example: str, sides: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description=title,
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(name for name in SIDES if name != "before")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has one of...")
    parser.add_argument("--tokens", default="", metavar="N,N", help="of gpt2's cases only these")
    parser.add_argument(
        "--peers", default=",".join(sides), help=f"of {names}; default: %(default)s"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7, help="turns each side has")
    parser.add_argument("--turn", type=float, default=0.3, help="seconds a turn lasts, about")
    parser.add_argument("--limit", type=float, default=30, help="seconds a first call may take")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.1 s")
    parser.add_argument("--prepare", action="store_true", help="write the programs only")
    parser.add_argument("--profile", action="store_true", help="here by operator; no peers")
    parser.add_argument("--json", type=Path, help="write JSON lines here")
    parser.add_argument("--plot", type=Path, help="write a PNG here")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev", help="CMake's folder")
    parser.add_argument(
        "--before", type=Path, help="CMake's folder of an earlier state, measured in turns with it"
    )
    parser.add_argument(
        "--target",
        default="",
        metavar="SET",
        help="the instruction set of this project's kernels: AVX2, SSE4; "
        "peers are held to it where they can be (not ONNX Runtime, not XNNPACK)",
    )
    parser.add_argument("--upstream", default="", help="Python with upstream's wheel")
    parser.add_argument("--peers-python", default="", help="Python with the other peers")
    options = parser.parse_args()
    os.environ.update(held_to(options.target))
    unknown = [p for p in options.peers.split(",") if p not in SIDES or p == "before"]
    if unknown:
        parser.error(f"no side {unknown[0]!r}; there are {names}")
    if options.quick:
        options.rounds, options.turn = 3, 0.1
    if options.before:
        options.peers += ",before"
    return options


def held_to(target: str) -> dict[str, str]:
    """The environment in which libraries of peers use no better instructions than those."""
    if target != "AVX2":
        return {}
    return {
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # of OpenVINO, too
        "DNNL_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    }


def last_cache_bytes() -> int:
    """Bytes of this processor's largest cache; 0 where the system does not say."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    return max((int(path.read_text().strip().rstrip("K")) * 1024 for path in sizes), default=0)


class Comparison:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.sides = [SIDES[name] for name in options.peers.split(",")]
        found = {"own": sys.executable, "upstream": options.upstream, "peers": options.peers_python}
        self.pythons = {k: p for k, p in found.items() if p and Path(p).exists()}
        self.programs = Programs(self.pythons)
        self.workers: dict[str, Worker] = {}
        self.too_slow: set[tuple[str, str]] = set()  # (side, program)
        self.died: list[str] = []  # which side, where, how
        self.bin = options.build / "tests" / "bench"
        self.target = [options.target] if options.target else []

    def machine(self) -> dict:
        """The machine's limits, measured now."""
        one = {f"{name}_1": value for name, value in self.limits(1).items()}
        return {"threads": self.options.threads, **self.limits(self.options.threads), **one}

    def limits(self, threads: int) -> dict:
        command = [str(self.bin / "machine_limits"), str(threads), *self.target]
        found = json.loads(subprocess.check_output(command, text=True))
        return {**found, "cache": last_cache_bytes()}

    def prepare(self, cases: list[Case], progress: Progress) -> None:
        kinds = list(dict.fromkeys(side.kind for side in self.sides if side.kind))
        distinct = list({case.program: case for case in cases}.values())
        task = progress.add_task("programs", total=len(kinds) * len(distinct))
        for kind in kinds:
            progress.update(task, description=f"programs: {kind}")
            self.programs.write(kind, distinct, lambda: progress.advance(task))

    def worker(self, side: Side) -> Worker:
        worker = self.workers.get(side.name)
        if worker is None or worker.process.poll() is not None:
            threads = str(self.options.threads)
            if side.worker == "here":
                build = self.options.before if side.name == "before" else self.options.build
                command = [str(build / "tests" / "bench" / "bench_runner"), threads, *self.target]
            elif side.environment in self.pythons:
                script = str(HERE / "_worker.py")
                command = [self.pythons[side.environment], script, side.worker, threads]
            else:
                raise Failure("not on this machine")
            worker = self.workers[side.name] = Worker(command, self.options.threads)
        return worker

    def open(self, side: Side, case: Case, inputs: list[dict]) -> dict:
        if (side.name, case.program) in self.too_slow:
            raise Failure(f"> {self.options.limit:.0f} s")
        program = self.programs.path(side, case) if side.kind else None
        if program in self.programs.failures:
            raise Failure(self.programs.failures[program])
        try:
            return self.worker(side).ask(
                self.options.limit + (10 if side.worker == "here" else 30),  # imports, loads
                do="open",
                case=case.name,
                program=str(program),
                inputs=inputs,
                output=str(OUTPUT / "output.bin"),
            )
        except Failure as e:
            if str(e).startswith(">"):
                self.too_slow.add((side.name, case.program))
                raise Failure(f"> {self.options.limit:.0f} s") from None
            raise

    def measure(self, case: Case, advance) -> dict:
        """{"work": flops and bytes, "sides": {name: median and more, or error}}. A side that gives
        no answer, or whose process dies between two rounds, has an error; the others go on."""
        row: dict = {"work": {}, "sides": {}}
        calls = self.first_calls(case, row)
        before = self.processor_seconds()
        limits = []
        for _ in range(self.options.rounds):
            if row["work"].get("bytes") or row["work"].get("flops"):
                limits.append(self.limits(self.options.threads))
            for name, n in list(calls.items()):
                time.sleep(SETTLE)
                try:
                    worker = self.workers[name]
                    worker.ask(do="run", calls=1)  # caches and threads awake
                    row["sides"][name]["seconds"] += worker.ask(do="run", calls=n)["seconds"]
                except Failure as e:
                    del calls[name]
                    row["sides"][name] = {"error": str(e)}
                    self.died.append(f"{name} in {case.name}: {e}")
            advance()
        clock, everything, sides = (
            b - a for a, b in zip(before, self.processor_seconds(), strict=True)
        )
        if limits:  # memory is twice as fast in one minute as in another
            medians = {name: statistics.median(x[name] for x in limits) for name in limits[0]}
            row["work"]["limit"] = _report.limit(row["work"], medians)
        row["work"]["others"] = max(0.0, everything - sides) / clock / (os.cpu_count() or 1)
        for cell in row["sides"].values():
            if samples := cell.pop("seconds", None):
                cell |= {"median": statistics.median(samples), "min": min(samples)}
                cell["calls"] = len(samples)
        return row

    def first_calls(self, case: Case, row: dict) -> dict[str, int]:
        """Opens the case on every side and compares what it says with eager's; calls per turn."""
        inputs = write_inputs(case)
        calls: dict[str, int] = {}
        expected, largest = None, case.largest_difference()
        for side in sorted(self.sides, key=lambda s: s.name != "eager"):
            try:
                answer = self.open(side, case, inputs)
                output = read_output(answer)
                if side.name == "eager":
                    expected = output
                    row["work"] = {k: answer[k] for k in ("flops", "bytes", "peak")}
                    largest = case.largest_difference(answer.get("quantization", 0))
                off = difference(output, expected) if expected is not None else 0.0
                if off > largest:
                    raise Failure(f"wrong: off by {off:.1e}, at most {largest:.1e}")
                first = self.worker(side).ask(do="run", calls=1)["seconds"][0]
                calls[side.name] = max(1, min(200, int(self.options.turn / max(first, 1e-9))))
                row["sides"][side.name] = {"seconds": [], "difference": off}
                row["sides"][side.name] |= {"version": answer.get("version", "")}
            except Failure as e:
                row["sides"][side.name] = {"error": str(e)}
                if str(e).startswith("crashed"):
                    self.died.append(f"{side.name} in {case.name}: {e}")
        return calls

    def profile(self, case: Case) -> str:
        """What `executorch profile` says of a run with the case's shapes."""
        program = self.programs.path(SIDES["here"], case)
        if program in self.programs.failures:
            raise Failure(self.programs.failures[program])
        shapes = ",".join("x".join(map(str, i["sizes"])) for i in write_inputs(case))
        command = self.options.build / "executorch" / "extension" / "command" / "executorch"
        options = ["--shape", shapes, "--threads", str(self.options.threads)]
        done = subprocess.run(
            [command, "profile", program, *options], capture_output=True, text=True
        )
        if done.returncode:
            raise Failure(done.stderr.strip())
        return done.stdout

    def processor_seconds(self) -> tuple[float, float, float]:
        """On the clock, and used by everything and by the sides and this process."""
        living = [w.process.pid for w in self.workers.values() if w.process.poll() is None]
        pids = [os.getpid(), *living]
        stats = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
        # Their children, once they ended, included.
        sides = sum(int(ticks) for stat in stats for ticks in stat[11:15])
        everything = sum(map(int, Path("/proc/stat").read_text().split()[1:4]))
        tick = os.sysconf("SC_CLK_TCK")
        return time.monotonic(), everything / tick, sides / tick

    def close(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def selected(cases: tuple[Case, ...], options: argparse.Namespace) -> list[Case]:
    only = [text for text in options.only.split(",") if text]
    tokens = {f"gpt2 {n} tokens" for n in options.tokens.split(",") if n}
    return [
        c
        for c in cases
        if (not only or any(text in c.name for text in only))
        and (
            not tokens
            or not c.program.startswith("gpt2")
            or c.name.removesuffix(f" {c.quantize}") in tokens
        )
    ]


def main(title: str, example: str, cases: tuple[Case, ...], sides: list[str]) -> int:
    options = parse(title, example, sides)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    chosen = selected(cases, options)
    if options.profile:
        options.peers = "here"
    comparison = Comparison(options)
    console = Console(width=None if sys.stdout.isatty() else 200)
    rows: dict[str, dict] = {}
    machines: list[dict] = []
    try:
        with Progress(console=console, transient=True) as progress:
            comparison.prepare(chosen, progress)
            if options.prepare:
                return int(bool(comparison.programs.failures))
            machines.append(comparison.machine())
            task = progress.add_task("", total=len(chosen) * options.rounds)
            try:
                for case in chosen:
                    progress.update(task, description=case.name)
                    if options.profile:
                        console.print(comparison.profile(case), markup=False, highlight=False)
                        continue
                    rows[case.name] = comparison.measure(case, lambda: progress.advance(task))
                    console.print(_report.line(case.name, rows[case.name]), markup=False)
                    if options.json:
                        _report.write_json(options.json, machines[0], rows)
                machines.append(comparison.machine())
            except KeyboardInterrupt:
                console.print("interrupted; this far:")
    except (Failure, subprocess.CalledProcessError) as e:
        console.print(f"bench: {e}", style="red", markup=False)
        comparison.died.append(str(e))
    finally:
        comparison.close()
    if rows:
        _conclude(comparison, title, rows, machines, console)
    for line in comparison.died:
        console.print(f"died: {line}", style="red", markup=False)
    wrong = any("median" not in r["sides"].get("here", {"median": 0}) for r in rows.values())
    return int(wrong or not (rows or options.profile))


def _conclude(
    comparison: Comparison, title: str, rows: dict, machines: list[dict], console: Console
) -> None:
    options = comparison.options
    machine = {k: max(m[k] for m in machines) for k in machines[0]}  # one may have been disturbed
    machine["processor"] = platform.processor() or platform.machine()
    names = [side.name for side in comparison.sides]
    console.print(_report.table(title, rows, names, machine))
    for path, error in comparison.programs.failures.items():
        console.print(f"{path.parent.name}/{path.name}: {error}", markup=False)
    if options.json:
        _report.write_json(options.json, machine, rows)
    if options.plot:
        _report.plot(options.plot, title, rows, names, machine)
