"""python -m executorch.extension.command.python_verb MODULE ...: a verb that is a Python module.

Ctrl-C ends it without a traceback, also in the seconds that importing torch takes.
"""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    sys.argv = sys.argv[1:]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:
        sys.exit(130)  # as a shell says it


if __name__ == "__main__":
    main()
