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


def code(cut: Cut) -> str:
    """`text` with the added lines before and after it."""
    return "\n".join(part for part in (cut.before, text(cut), cut.after) if part) + "\n"
