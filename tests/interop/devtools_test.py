"""Traces and bundled programs, exchanged with upstream: each side reads what the other wrote and
sees the same.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.interop.sides import SIDES, needs_upstream, work

pytestmark = needs_upstream

WORKER = Path(__file__).with_name("devtools_worker.py")
# The longest sum has 5 terms; a softmax follows.
TOLERANCE = 16 * torch.finfo(torch.float32).eps


def answer(side: str, verb: str, folder: Path, name: str) -> Any:
    return json.loads(work(side, WORKER, folder, verb, str(folder), name).strip().splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both sides exported, and recorded of one program."""
    folder = tmp_path_factory.mktemp("devtools")
    for side in SIDES:
        answer(side, "export", folder, side)
    for side in SIDES:
        answer(side, "record", folder, side)
    return folder


@pytest.mark.parametrize("recorded", SIDES)
def test_both_inspectors_show_the_same_of_a_dump(folder: Path, recorded: str) -> None:
    ours = answer("ours", "rows", folder, recorded)
    assert ours == answer("upstream", "rows", folder, recorded)
    assert [name for name, *_ in ours] == ["Default", "Execute"]


def test_both_runtimes_record_the_same_events_and_values(folder: Path) -> None:
    ours, upstream = (answer("ours", "rows", folder, side) for side in SIDES)
    for (name, events, outputs), (other_name, other_events, other_outputs) in zip(
        ours, upstream, strict=True
    ):
        assert name == other_name
        assert [e[0] for e in events] == [e[0] for e in other_events]
        assert [len(e[1]) for e in events] == [len(e[1]) for e in other_events]
        for event, other in zip(events, other_events, strict=True):
            assert_close(event[3], other[3])
        assert_close(outputs, other_outputs)


def assert_close(found: list, expected: list) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(
            torch.tensor(a, dtype=torch.float64),
            torch.tensor(b, dtype=torch.float64),
            rtol=TOLERANCE,
            atol=TOLERANCE,
        )


@pytest.mark.parametrize("bundled", SIDES)
@pytest.mark.parametrize("runs", SIDES)
def test_bundles_are_verified_by_the_other_side(folder: Path, bundled: str, runs: str) -> None:
    assert answer(runs, "verify", folder, bundled) is None
    assert answer(runs, "verify", folder, f"wrong.{bundled}") is not None
