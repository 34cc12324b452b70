"""ETDumps and ETRecords exchanged with upstream: whoever exported and whoever ran the program, both
Inspectors show the same rows.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.inspector_cases import CASES
from tests.interop.sides import SIDES, needs_upstream, work

pytestmark = needs_upstream

SCRIPT = Path(__file__).with_name("inspector_cases.py")
DISTANCES = ("MSE", "L1", "SNR")


@pytest.fixture(scope="session")
def exchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspected")
    for verb in ("export", "run", "show"):
        for side in SIDES:
            work(side, SCRIPT, folder, verb, side, str(folder))
    return folder


def _rows(dump: Path) -> tuple[Any, Any]:
    """What our Inspector made of a dump, and upstream's."""
    ours, upstream = (
        json.loads(dump.with_suffix(f".{side}.rows").read_text()) for side in ("ours", "upstream")
    )
    return ours, upstream


@pytest.mark.parametrize("runner", SIDES)
@pytest.mark.parametrize("exporter", SIDES)
@pytest.mark.parametrize("case", CASES)
def test_both_inspectors_show_the_same(
    exchanged: Path, case: str, exporter: str, runner: str
) -> None:
    dump = exchanged / f"{case}.{exporter}.{runner}.etdp"
    found, expected = _rows(dump)
    assert len(expected["table"]) > 4
    for row, wanted in zip(found["table"], expected["table"], strict=True):
        assert row == wanted
    assert found["outputs"] == expected["outputs"] != [[], []]
    assert found["modules"] == pytest.approx(expected["modules"], rel=1e-12)
    texts = [dump.with_suffix(f".{side}.txt").read_text() for side in SIDES]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("runner", SIDES)
@pytest.mark.parametrize("exporter", SIDES)
@pytest.mark.parametrize("case", CASES)
def test_every_gap_of_upstream_is_found(
    exchanged: Path, case: str, exporter: str, runner: str
) -> None:
    """It leaves out operators with several results."""
    dump = exchanged / f"{case}.{exporter}.{runner}.etdp"
    found, expected = _rows(dump)
    for distance in DISTANCES:
        assert expected[distance]
        for row in expected[distance]:
            handles = sorted(set(row["aot_debug_handle"]))
            same = [r for r in found[distance] if sorted(r["aot_debug_handle"]) == handles]
            gaps = [r["gap"][0] for r in same if r["aot_ops"] == row["aot_ops"]]
            assert any(gap == pytest.approx(row["gap"][0], rel=1e-5, abs=1e-30) for gap in gaps), (
                distance,
                row["aot_ops"],
                row["gap"],
                gaps,
            )
