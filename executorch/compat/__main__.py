"""Runs a script, or with -m a module, with the old names in place.

python -m executorch.compat script.py [arguments]
python -m executorch.compat -m module [arguments]
"""

import os
import runpy
import sys


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv = arguments[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    if not arguments or arguments[0].startswith("-"):
        asked = arguments[:1] in (["-h"], ["--help"])
        print((__doc__ or "").strip(), file=sys.stdout if asked else sys.stderr)
        sys.exit(0 if asked else 2)
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))  # as `python script.py` has it
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
