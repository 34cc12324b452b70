"""The console command `executorch`: starts the program of that name that is part of the package.

Its verbs `export` and `parity` come back to this Python.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from executorch.exir._needs_torch import need_torch

PROGRAM = Path(__file__).resolve().parents[2] / "bin" / "executorch"


def main() -> NoReturn:
    """Become the program, with the arguments of this process."""
    if not PROGRAM.exists():
        sys.exit(f"executorch: {PROGRAM} is missing; this installation was made without CLI11")
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb in ("export", "parity"):
        try:
            need_torch(f"executorch: {verb}")
        except ModuleNotFoundError as error:
            sys.exit(str(error))
    os.environ["EXECUTORCH_PYTHON"] = sys.executable
    os.execv(PROGRAM, ["executorch", *sys.argv[1:]])
