"""`python -m executorch.compat script.py [arguments]` runs a script with the old names in place."""

import runpy
import sys

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m executorch.compat script.py [arguments]")
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
