"""Both packages of one name, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.built import ROOT

UPSTREAM = os.environ.get("EXECUTORCH_UPSTREAM_PYTHON", "")
SIDES = {"ours": sys.executable, "upstream": UPSTREAM}
needs_upstream = pytest.mark.skipif(not UPSTREAM, reason="EXECUTORCH_UPSTREAM_PYTHON is not set")


def start(side: str, script: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs a script with arguments in `folder`."""
    environment = os.environ | {"PYTHONPATH": str(ROOT) if side == "ours" else ""}
    command = [SIDES[side], str(script), *args]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def work(side: str, script: Path, folder: Path, *args: str) -> str:
    """What a run that ends well prints."""
    done = start(side, script, folder, *args)
    assert done.returncode == 0, f"{side} {args}: {done.stderr[-2000:]}"
    return done.stdout
