"""Cuts code out of the tutorial texts, which lie beside the repository in ../shared/seeds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.seeds.rows import SEEDS, Cut

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT.parent / "shared" / "seeds"


def available() -> bool:
    return all((TEXTS / name).exists() for name in SEEDS.values())


@cache
def _lines(seed: str) -> list[str]:
    return (TEXTS / SEEDS[seed]).read_text(encoding="utf-8").split("\n")


def text(cut: Cut) -> str:
    """The lines of `cut`, indentation restored, without what is added around them."""
    lines = _lines(cut.seed)[cut.first - 1 : cut.last]
    where = f"row {cut.row}, seed {cut.seed}, line {cut.first}"
    if not lines or not lines[0].startswith(cut.starts):
        raise ValueError(f"{where}: found {lines[:1]}, expected a line starting {cut.starts!r}")
    if cut.layout:
        if len(cut.layout) != len(lines):
            raise ValueError(f"{where}: {len(lines)} lines, layout of {len(cut.layout)}")
        pairs = zip(cut.layout, lines, strict=True)
        lines = ["    " * int(level) + line.strip() for level, line in pairs]
    return "\n".join(lines)


def left_out(cut: Cut) -> str:
    """The line that awaits a part of the project, or nothing."""
    line, folder = cut.awaits or ("", ".")
    return "" if (ROOT / folder).exists() else line


def alterations(cut: Cut) -> str:
    """Everything in which `code` differs from the page."""
    found = []
    if cut.layout.strip("0"):
        found.append("indentation restored")
    if left_out(cut):
        found.append(f"without {left_out(cut).strip()}, which is not there yet")
    found += [f"{_short(a)} is run as {_short(b)}" for a, b in cut.corrects]
    if cut.before:
        found.append(f"added in front: {_short(cut.before)}")
    if cut.after:
        found.append(f"added behind: {_short(cut.after)}")
    return "; ".join([*found, *([cut.note] if cut.note else [])])


def _short(code: str) -> str:
    lines = [line.strip() for line in code.strip().split("\n")]
    more = f" (and {len(lines) - 1} lines)" if len(lines) > 1 else ""
    return repr(lines[0][:70]) + more


def code(cut: Cut) -> str:
    """`text` as it is run: with the added lines, without the one that has to wait, corrected."""
    lines = text(cut).split("\n")
    if left_out(cut):
        lines.remove(left_out(cut))
    for printed, correct in cut.corrects:
        if not any(printed in line for line in lines):
            raise ValueError(f"row {cut.row}, seed {cut.seed}: {printed!r} is not in the text")
        lines = [line.replace(printed, correct) for line in lines]
    added = ([cut.before] if cut.before else [], [cut.after] if cut.after else [])
    return "\n".join(added[0] + lines + added[1]) + "\n"
