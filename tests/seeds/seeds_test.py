"""The snippets of the tutorials do what their pages say; `python -m tests.seeds` prints a table."""

from __future__ import annotations

import pytest

from tests.seeds import rows
from tests.seeds.cut import available, code
from tests.seeds.table import GROUPS, not_run

pytestmark = pytest.mark.skipif(not available(), reason="the tutorial texts are not here")


def _cuts() -> list[rows.Cut]:
    cuts = [*rows.DOWNLOADS, *rows.SHELL]
    for script in rows.SCRIPTS:
        cuts += [*script.cuts, *script.commands]
        cuts += [fact for cut in script.cuts for fact in cut.shows]
    for p in rows.PROJECTS:
        cuts += [*p.source_cuts, *p.cmake_cuts, p.console, *p.files]
        cuts += [cut for build in p.builds for cut in build]
        read = p.parses.cuts if p.parses else ()
        cuts += [*read, *(fact for cut in read for fact in cut.shows)]
    for c in rows.CUSTOM_OPERATORS:
        cuts += [c.schemas, c.kernel, *c.wrapper, *c.model]
    return cuts


def test_every_row_is_run_or_has_a_reason() -> None:
    covered = {cut.row for cut in _cuts()} | {r.row for r in not_run()}
    assert covered == set(range(1, rows.N_ROWS + 1))


@pytest.mark.parametrize("cut", _cuts(), ids=lambda c: f"{c.row}{c.seed}{c.first}")
def test_a_cut_is_where_the_table_says(cut: rows.Cut) -> None:
    assert code(cut).strip()


@pytest.mark.xdist_group("seeds")
@pytest.mark.parametrize(
    "group", [pytest.param(g, marks=pytest.mark.slow) if "cpp" in g else g for g in GROUPS]
)
def test_the_snippets_run(group: str) -> None:
    failed = [r for r in GROUPS[group]() if r.status == "FAIL"]
    assert not failed, "\n".join(f"row {r.row}{r.seed}: {r.note}" for r in failed)
