"""The code of the documentation runs as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.readme.pages import COMMAND, ROOT, blocks_of, run

PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem == "ray":
        pytest.importorskip("ray", reason="ray is not installed; ./dev ray")
    blocks = blocks_of(page)
    if any("executorch " in b.code for b in blocks if b.language == "sh") and not COMMAND.exists():
        pytest.skip("the command is not built; ./dev build")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    try:
        run(page, tmp_path)
    finally:  # modules of the page's folder
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and file.startswith(str(tmp_path)):
                del sys.modules[name]


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"([\w-]+\.md)", (ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == [page.name for page in PAGES]


def test_code_that_nothing_would_run_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```cpp\nint x;\n```\n")
    with pytest.raises(ValueError, match="page.md:4"):
        blocks_of(page)


def test_a_block_that_fails_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    page.write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError, match="page.md:6"):
        run(page, tmp_path)
    page.write_text("`a.txt`:\n```text\n```\n```sh\ntest -e b.txt\n```\n")
    with pytest.raises(AssertionError, match="page.md:5: exit status 1"):
        run(page, tmp_path)
