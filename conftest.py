"""What holds for all tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.built import BUILD

# After every pass, also in processes that tests start: see exir/graph/pass_checks.py.
os.environ.setdefault("EXECUTORCH_CHECK_PASSES", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After a whole build, which `./dev` announces, nothing may be left out as not built; where it
    has installed the tools as well, nothing at all."""
    report = yield
    if not report.skipped:
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    announced = ""
    if os.environ.get("EXECUTORCH_EVERYTHING_BUILT") and "not built" in reason:
        announced = "after a whole build"
    if os.environ.get("EXECUTORCH_EVERYTHING_THERE"):
        announced = "with all tools installed"
    if announced:
        report.outcome = "failed"
        report.longrepr = f"{reason} ({announced})"
    return report


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed package and its C interface, renamed since.
    Tests that ask for it are of one group (`xdist_group("install")`), so that it is made once."""
    folder = tmp_path_factory.mktemp("install")
    for component in ("executorch", "executorch_c"):
        command = ["cmake", "--install", BUILD, "--prefix", folder / "before"]
        subprocess.run([*command, "--component", component], check=True, capture_output=True)
    return (folder / "before").rename(folder / "prefix")
