"""Products of many sizes, few of them powers of two: where a row more costs more than its share.

A step is where the time of a row grows from one number of rows to the next, or where more rows take
less time in all. Each product is measured in several turns, in random order; the fastest counts.
A plot is written, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from _sides import OUTPUT, ROOT
from rich.console import Console
from rich.markup import escape
from rich.table import Table

TYPES = ("f32", "f32[panels]", "int8", "int4_groups")
STEP = 1.10

Curve = dict[int, float]  # seconds by rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench sweep",
        description=__doc__,
        epilog="example: ./dev bench sweep --types int8 --turns 3 --json output/sweep.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--types", default=",".join(TYPES), help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--target", default="", help="an instruction set, as AVX2")
    parser.add_argument("--json", type=Path, help="write what was measured here")
    plot = OUTPUT / "sweep.png"
    parser.add_argument("--plot", type=Path, default=plot, help="default: %(default)s")
    options = parser.parse_args()
    if unknown := set(options.types.split(",")) - set(TYPES):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(TYPES)}")
    return options


def measure(options: argparse.Namespace, kind: str) -> dict[tuple[int, int], Curve]:
    """Curves by the rows and columns of the weights."""
    name = kind.replace("[", ".").replace("]", ".")
    command = [str(ROOT / "build" / "dev" / "executorch" / "cpu" / "cpu_benchmark")]
    command += [f"--target={options.target}"] if options.target else []
    command += [f"--benchmark_filter=^Sweep/{name}/", "--benchmark_min_time=0.02"]
    command += [f"--benchmark_repetitions={options.turns}", "--benchmark_format=json"]
    command += ["--benchmark_enable_random_interleaving=true"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    curves: dict[tuple[int, int], Curve] = defaultdict(dict)
    for run in json.loads(text[text.index("{") :])["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        m, k, n = (int(size) for size in run["name"].split("/")[2].split("x"))
        seconds = run["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[run["time_unit"]]
        curve = curves[k, n]
        curve[m] = min(seconds, curve.get(m, seconds))
    return curves


def steps(curve: Curve) -> list[tuple[float, int, int]]:
    """How much too much each next number of rows costs, and the two numbers."""
    rows = sorted(curve)
    found = []
    for m, more in zip(rows, rows[1:], strict=False):
        growth = curve[more] / curve[m]
        found.append((max(growth * m / more, 1 / growth), m, more))
    return found


def table(kind: str, curves: dict[tuple[int, int], Curve]) -> Table:
    result = Table(
        "weights", "1 row", "most at", "largest steps", title=escape(kind), title_justify="left"
    )
    for (k, n), curve in curves.items():
        rates = {m: 2e-9 * m * k * n / s for m, s in curve.items()}
        best = max(rates, key=rates.__getitem__)
        worst = sorted(steps(curve), reverse=True)[:4]
        shown = [
            f"[{'red' if step > STEP else 'green'}]{m} to {more}: {step:.2f}[/]"
            for step, m, more in worst
        ]
        first = f"{curve[min(curve)] * 1e6:.0f} us"
        most = f"{best} rows: {rates[best]:.0f} Gop/s"
        result.add_row(f"{k} x {n}", first, most, ", ".join(shown))
    return result


def plot(path: Path, found: dict[str, dict[tuple[int, int], Curve]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, len(found), figsize=(5 * len(found), 4), squeeze=False)
    for axes, (kind, curves) in zip(places[0], found.items(), strict=True):
        for (k, n), curve in curves.items():
            rows = sorted(curve)
            axes.plot(rows, [2e-9 * m * k * n / curve[m] for m in rows], ".-", label=f"{k} x {n}")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_title(kind)
        axes.set_xlabel("rows")
        axes.set_ylabel("10^9 operations a second")
    places[0][0].legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> int:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    found = {}
    for kind in options.types.split(","):
        with console.status(f"{kind} ..."):
            found[kind] = measure(options, kind)
        console.print(table(kind, found[kind]))
    every = [step for curves in found.values() for c in curves.values() for step, *_ in steps(c)]
    console.print(
        f"{sum(step > STEP for step in every)} of {len(every)} steps are more than {STEP - 1:.0%}"
    )
    if options.json:
        rows = [
            {"type": kind, "rows": m, "k": k, "n": n, "seconds": seconds}
            for kind, curves in found.items()
            for (k, n), curve in curves.items()
            for m, seconds in curve.items()
        ]
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plot(options.plot, found)
    console.print(f"wrote {options.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
