"""Make the Python that runs this able to export and run: packages, native modules, import path.

    ./install_requirements.sh            into the active environment, or PYTHON_EXECUTABLE's
    ./install_requirements.sh --clean    remove what earlier builds left, and stop

Upstream's other options are accepted and change nothing: everything is always built.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dev.setup import (  # noqa: E402
    PYTHON_TARGETS,
    install_packages,
    install_python_packages,
    link_checkout,
)
from dev.steps import ROOT, StepFailed, step  # noqa: E402


def clean() -> None:
    for folder in ("build", "cmake-out", "pip-out"):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    for module in (ROOT / "executorch").rglob("*.so"):
        module.unlink()


def install(python: Path) -> None:
    install_packages()
    install_python_packages(python)
    link_checkout(python)
    folder = ROOT / "build" / f"python-{sys.version_info.major}.{sys.version_info.minor}"
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "EXECUTORCH_BUILD_PYBIND": "ON",
        "EXECUTORCH_BUILD_TESTS": "OFF",
        "Python_EXECUTABLE": str(python),
    }
    arguments = [f"-D{name}={value}" for name, value in options.items()]
    step("configure", ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", *arguments])
    step("build", ["ninja", "-C", str(folder), *PYTHON_TARGETS])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clean", action="store_true", help="remove what earlier builds left")
    for upstreams in ("--minimal", "--use-pt-pinned-commit", "--verbose", "--example"):
        parser.add_argument(upstreams, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-e", "--editable", action="store_true", help=argparse.SUPPRESS)
    for upstreams in ("--pybind", "--optional-dependency"):
        parser.add_argument(upstreams, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    try:
        clean() if arguments.clean else install(Path(sys.executable))
    except StepFailed as e:
        print(f"install_requirements: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
