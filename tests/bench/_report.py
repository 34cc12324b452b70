"""Tables, JSON lines and a plot of what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from rich.table import Table

HERE = "here"
OWN = (HERE, "before")  # what their names begin with
EXPLAINED = (
    "\n* faster than the limit that was measured in turns with it: the machine was busy with "
    "something else while it was, or the caches kept a part"
)


def seconds(value: float) -> str:
    scale, unit = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "us")
    value *= scale
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def describe(machine: dict) -> str:
    return (
        f"{machine['threads']} threads; read {machine['read'] / 1e9:.1f} GB/s"
        f" (one thread {machine['read_1'] / 1e9:.1f});"
        f" multiply-add peak {machine['peak'] / 1e9:.0f} GFLOP/s"
        f" (one thread {machine['peak_1'] / 1e9:.0f}),"
        f" of bytes {machine['int8'] / 1e9:.0f} ({machine['int8_1'] / 1e9:.0f})"
    )


def limit(work: dict, machine: dict) -> float:
    """Least seconds this machine could take: every byte once, every operation at the peak.
    What the last cache holds costs nothing, as it stays there from call to call."""
    moved = work.get("bytes", 0) if work.get("bytes", 0) > machine["cache"] else 0
    return max(moved / machine["read"], work.get("flops", 0) / machine[work.get("peak", "peak")])


def line(name: str, row: dict) -> str:
    """What a row says, as soon as it is measured."""
    cells = [
        f"{side} {seconds(cell['median']) if 'median' in cell else cell['error']}"
        for side, cell in row["sides"].items()
    ]
    return f"{name}: {', '.join(cells)}"


def share(bound: float, own: float) -> str:
    """Of the machine's limit; more than all of it is none, and is marked."""
    return f"{bound / own:.0%}" + ("*" if bound > own else "")


def table(title: str, rows: dict[str, dict], sides: list[str], machine: dict) -> Table:
    """One row a case: the machine's limit, each side's median and its ratio to ours."""
    result = Table("case", "limit", title=f"{title}\n{describe(machine)}", title_justify="left")
    for side in sides:
        result.add_column(side, justify="right")
    result.add_column("share of limit", justify="right")
    result.add_column("best peer / here", justify="right")
    disturbed = max((row["work"]["others"] for row in rows.values()), default=0)
    result.caption = f"other processes used up to {disturbed:.0%} of the processors meanwhile"
    explained = False
    for name, row in rows.items():
        times = {s: c["median"] for s, c in row["sides"].items() if "median" in c}
        own = times.get(HERE)
        bound = row["work"].get("limit", 0)
        cells = []
        for side in sides:
            cell = row["sides"].get(side, {"error": "-"})
            if "median" not in cell:
                cells.append(f"[yellow]{cell['error'][:40]}[/]")
            elif own and side != HERE:
                cells.append(f"{seconds(cell['median'])} ({cell['median'] / own:.2f}x)")
            else:
                cells.append(f"[bold]{seconds(cell['median'])}[/]")
        peers = [t for s, t in times.items() if not s.startswith(OWN)]
        verdict = f"{min(peers) / own:.2f}" if own and peers else "-"
        color = "green" if verdict != "-" and float(verdict) >= 1 else "red"
        of_limit = share(bound, own) if own and bound else "-"
        result.add_row(
            name, seconds(bound) if bound else "-", *cells, of_limit, f"[{color}]{verdict}"
        )
        explained = explained or of_limit.endswith("*")
    if explained:
        result.caption += EXPLAINED
    return result


def write_json(path: Path, machine: dict, rows: dict[str, dict]) -> None:
    """First the machine, then one object for each case and side."""
    lines = [{"machine": machine}]
    for name, row in rows.items():
        work = row["work"]
        lines += [{"case": name, "side": s, **work, **cell} for s, cell in row["sides"].items()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def plot(path: Path, title: str, rows: dict[str, dict], sides: list[str], machine: dict) -> None:
    """Horizontal bars, logarithmic: each side's time as a multiple of ours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = {n: r["sides"] for n, r in rows.items() if "median" in r["sides"].get(HERE, {})}
    peers = [s for s in sides if s != HERE]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.22 * len(shown) * max(len(peers), 1)))
    height = 0.85 / max(len(peers), 1)
    for i, side in enumerate(peers):
        places, ratios = [], []
        for y, row in enumerate(shown.values()):
            if "median" in row.get(side, {}):
                places.append(y + (i + 0.5) * height - 0.425)
                ratios.append(row[side]["median"] / row[HERE]["median"])
        bars = axes.barh(places, [r - 1 for r in ratios], height, left=1, label=side)
        axes.bar_label(bars, [f"{r:.2f}" for r in ratios], fontsize=7, padding=2)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), list(shown))
    axes.invert_yaxis()
    axes.set_xlabel("time / time here (right of 1: slower than here)")
    axes.set_title(f"{title}\n{describe(machine)}", fontsize=9)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
