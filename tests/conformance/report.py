"""The table of an operator's samples by dtype."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.conformance.runs import Outcome


@dataclass
class Row:
    """What became of the samples of one operator and dtype."""

    operator: str
    dtype: str
    counts: Counter[str] = field(default_factory=Counter)
    called: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, operator: str, dtype: str, outcomes: list[Outcome]) -> Row:
        row = cls(operator, dtype)
        for outcome in outcomes:
            row.counts[outcome.status] += 1
            row.called += outcome.called
            if outcome.status == "failed":
                row.reasons[f"{outcome.sample}: {outcome.reason}"] += 1
            elif outcome.status != "passed":
                row.reasons[f"{outcome.status}: {outcome.reason}"] += 1
        return row

    @property
    def failed(self) -> bool:
        return self.counts["failed"] > 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "dtype": self.dtype,
            **{key: self.counts[key] for key in ("passed", "failed", "refused", "skipped")},
            "called": self.called,
            "reasons": dict(self.reasons),
        }


def unsampled(rows: list[Row]) -> list[str]:
    """Operators none of whose samples ran in a program."""
    ran = {r.operator for r in rows if r.counts["passed"] + r.counts["failed"]}
    return sorted({r.operator for r in rows} - ran)


def show(rows: list[Row], console: Console) -> None:
    table = Table("operator", "dtypes", "passed", "failed", "refused by eager", "not exported")
    for operator in sorted({r.operator for r in rows}):
        mine = [r for r in rows if r.operator == operator]
        counts = sum((r.counts for r in mine), Counter())
        dtypes = [r.dtype for r in mine if r.counts["passed"] + r.counts["failed"]]
        style = "red" if counts["failed"] or operator in unsampled(mine) else ""
        numbers = [str(counts[k]) for k in ("passed", "failed", "refused", "skipped")]
        table.add_row(operator, str(len(dtypes)), *numbers, style=style)
    console.print(table)
    for row in rows:
        for reason, n in row.reasons.items():
            if row.failed and not reason.startswith(("refused", "skipped")):
                console.print(f"FAILED {row.operator} {row.dtype} x{n}: {reason}", markup=False)
    for operator in unsampled(rows):
        console.print(f"UNSAMPLED {operator}: no sample of it ran", markup=False)
    counts = sum((r.counts for r in rows), Counter())
    skipped: Counter[str] = Counter()
    for row in rows:
        for reason, n in row.reasons.items():
            if reason.startswith("skipped"):
                skipped[reason.removeprefix("skipped: ")[:110]] += n
    for reason, n in skipped.most_common(12):
        console.print(f"not exported x{n}: {reason}", markup=False)
    console.print(
        f"{len({r.operator for r in rows})} operators, "
        f"{len([r for r in rows if r.counts['passed']])} operator-dtype pairs, "
        + ", ".join(f"{counts[k]} {k}" for k in ("passed", "failed", "refused", "skipped"))
    )


def write(rows: list[Row], path: Path) -> None:
    path.write_text(json.dumps([row.as_dict() for row in rows], indent=1))
