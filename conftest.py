"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

# After every pass, also in processes that tests start: see exir/graph/pass_checks.py.
os.environ.setdefault("EXECUTORCH_CHECK_PASSES", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After a whole build, which `./dev` announces, nothing may be left out as not built."""
    report = yield
    if report.skipped and os.environ.get("EXECUTORCH_EVERYTHING_BUILT"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "not built" in reason:
            report.outcome = "failed"
            report.longrepr = f"{reason} (after a whole build)"
    return report
