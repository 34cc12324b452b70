"""The example's page in headless Chromium, and the code of docs/browser.md in Node."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.browser import Browser, Page, needs_chromium
from tests.readme.pages import blocks_of, run
from tests.wasm import programs
from tests.wasm.sides import COPIED, MISSING, PACKAGE, ROOT, copy_package, served

pytestmark = pytest.mark.skipif(not (PACKAGE / "executorch.wasm").exists(), reason=MISSING)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    copy_package(folder)
    for file in Path(COPIED or ROOT / "examples" / "browser").glob("*.[hj]*"):
        shutil.copy(file, folder)
    (folder / "dense.pte").write_bytes(programs.CASES["dense"].program())
    (folder / "damaged.pte").write_bytes(b"no program")
    profile = tmp_path_factory.mktemp("profile")
    with served(folder) as address, Browser(profile) as browser:
        yield browser.open(f"{address}/index.html?model=dense.pte")


def shown(page: Page, element: str) -> str:
    return page.wait_for(f"document.getElementById('{element}').value")


def enter(page: Page, **fields: str) -> None:
    for name, text in fields.items():
        page.value(f"document.querySelector('[name={name}]').value = '{text}'")
    page.value("document.getElementById('outputs').value = ''")
    page.value("document.getElementById('run').click()")


@needs_chromium
def test_the_page_runs_a_program(page: Page) -> None:
    page.wait_for("document.getElementById('run').disabled === false")
    described = page.value("document.getElementById('program').textContent")
    assert described == "forward(x: float32[8, 4], or smaller) → float32[8, 3], or smaller"
    enter(page, sizes0="1x4", elements0="1, 2, 3, 4")
    dtype, _, elements = shown(page, "outputs").partition("[1, 3]: ")
    assert dtype == "float32"
    found = torch.tensor([[float(x) for x in elements.split(",")]])
    (expected,) = programs.CASES["dense"].eager((torch.tensor([[1.0, 2, 3, 4]]),))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)  # six digits are shown
    assert " ms, the median" in page.value("document.getElementById('time').textContent")
    enter(page, sizes0="2x4", elements0="random")
    assert shown(page, "outputs").startswith("float32[2, 3]: ")


@needs_chromium
@pytest.mark.parametrize(
    ("sizes", "elements", "part"), [("9x4", "0", "9"), ("1x4", "1 2", "given 2"), ("1x4", "a", "a")]
)
def test_the_page_shows_what_is_wrong(page: Page, sizes: str, elements: str, part: str) -> None:
    page.wait_for("document.getElementById('run').disabled === false")
    enter(page, sizes0=sizes, elements0=elements)
    assert part in shown(page, "error")
    enter(page, sizes0="1x4", elements0="0")
    assert shown(page, "outputs")
    assert page.value("document.getElementById('error').value") == ""


@needs_chromium
def test_files_are_opened(page: Page) -> None:
    def choose(name: str) -> None:
        page.value(
            f"fetch('{name}').then((response) => response.blob()).then((blob) => {{"
            "  const chosen = new DataTransfer(); chosen.items.add(new File([blob], 'chosen.pte'));"
            "  const input = document.getElementById('file'); input.files = chosen.files;"
            "  input.dispatchEvent(new Event('change')); })"
        )

    choose("damaged.pte")
    assert "program_load_memory" in shown(page, "error")
    assert page.value("document.getElementById('run').disabled")
    choose("dense.pte")
    page.wait_for("document.getElementById('run').disabled === false")
    enter(page, sizes0="1x4", elements0="0")
    assert shown(page, "outputs").startswith("float32[1, 3]: ")


def test_the_documentations_code_prints_what_it_says(tmp_path: Path) -> None:
    documentation = ROOT / "docs" / "browser.md"
    run(documentation, tmp_path)
    copy_package(tmp_path)
    done = subprocess.run(
        ["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (script,) = (block.code for block in blocks_of(documentation) if block.file == "run.mjs")
    said = [line.partition("; // ")[2] for line in script.splitlines() if "; // " in line]
    printed = done.stdout.splitlines()
    assert [printed[0], printed[1]] == said[:2]
    assert "65" in printed[2]
