"""Traces and bundled programs, exchanged with upstream: each side reads what the other wrote and
sees the same.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

UPSTREAM = os.environ.get("EXECUTORCH_UPSTREAM_PYTHON", "")
pytestmark = pytest.mark.skipif(not UPSTREAM, reason="EXECUTORCH_UPSTREAM_PYTHON is not set")

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("devtools_worker.py")
SIDES = {"ours": sys.executable, "upstream": UPSTREAM}
# The longest sum has 5 terms; a softmax follows.
TOLERANCE = 16 * torch.finfo(torch.float32).eps


def work(side: str, verb: str, folder: Path, name: str) -> Any:
    environment = os.environ | {"PYTHONPATH": str(ROOT) if side == "ours" else ""}
    command = [SIDES[side], str(WORKER), verb, str(folder), name]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both sides exported, and recorded of one program."""
    folder = tmp_path_factory.mktemp("devtools")
    for side in SIDES:
        work(side, "export", folder, side)
    for side in SIDES:
        work(side, "record", folder, side)
    return folder


@pytest.mark.parametrize("recorded", SIDES)
def test_both_inspectors_show_the_same_of_a_dump(folder: Path, recorded: str) -> None:
    ours = work("ours", "rows", folder, recorded)
    assert ours == work("upstream", "rows", folder, recorded)
    assert [name for name, *_ in ours] == ["Default", "Execute"]


def test_both_runtimes_record_the_same_events_and_values(folder: Path) -> None:
    ours, upstream = (work("ours", "rows", folder, side) for side in SIDES)
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
    assert work(runs, "verify", folder, bundled) is None
    assert work(runs, "verify", folder, f"wrong.{bundled}") is not None
