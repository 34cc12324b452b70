"""What a build made, for the tests that run it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("EXECUTORCH_BUILD", ROOT / "build" / "dev"))
COMMAND = BUILD / "executorch" / "extension" / "command" / "executorch"


def needs(*files: Path) -> pytest.MarkDecorator:
    """Skips where one of them is missing, which after a whole build is a failure (conftest.py)."""
    missing = ", ".join(file.name for file in files if not file.exists())
    return pytest.mark.skipif(bool(missing), reason=f"not built: {missing}; ./dev build")
