"""Runs every block of code of a page, in order, in one empty folder.

A block behind a line that ends with a file's name and a colon is that file; other blocks are run:
Python in one namespace for the page, sh by bash with `python` and `executorch` in its path. `text`
is what something printed, and is left alone. EXECUTORCH_ROOT is the checkout, EXECUTORCH_PREFIX
what find_package finds: the installed package, or a prefix made of the checkout's build.

python pages.py PAGE...    with the package that this Python has installed, and its command; what
                           needs EXECUTORCH_ROOT is left out
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build" / "dev" / "executorch" / "extension" / "command" / "executorch"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
_NAMED = re.compile(r"`([\w/-]+\.\w+)`:\s*$")


@dataclass
class Block:
    language: str
    code: str
    line: int  # of the page, where the code begins
    file: str | None


def blocks_of(page: Path) -> list[Block]:
    """The page's blocks of code. Raises ValueError for one that nothing would run."""
    text = page.read_text()
    found = []
    for match in _FENCE.finditer(text):
        language, code = match.groups()
        before = text[: match.start()]
        named = _NAMED.search(before)
        block = Block(language, code, before.count("\n") + 2, named and named[1])
        if language == "text":
            continue
        if block.file is None and language not in ("python", "sh"):
            raise ValueError(f"{page}:{block.line}: no file's name is before this block {language}")
        found.append(block)
    return found


def run(page: Path, folder: Path, installed: bool = False) -> dict[str, Any]:
    """Run the page in `folder`, which becomes the current one, with the checkout's package or the
    installed one; the names that its Python made. Raises AssertionError with the line and what was
    printed."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    scope: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        if block.file is not None:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code)
        elif block.language == "python":
            # Behind as many empty lines as precede it, so that a traceback has the page's.
            code = "\n" * (block.line - 1) + block.code
            try:
                exec(compile(code, str(page), "exec"), scope)
            except Exception as error:
                raise AssertionError(f"{where}:\n{traceback.format_exc()}") from error
        else:
            _run_shell(block, where, folder, installed)
    return scope


def _prefix(folder: Path, installed: bool) -> Path:
    if installed:
        return Path(importlib.import_module("executorch").__path__[0])
    prefix = folder / ".prefix"
    if not prefix.exists():
        command = ["cmake", "--install", COMMAND.parents[3], "--component", "executorch"]
        subprocess.run([*command, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    return prefix


def _run_shell(block: Block, where: str, folder: Path, installed: bool) -> None:
    if installed and "$EXECUTORCH_ROOT" in block.code:
        print(f"{where}: is left out, as it needs a checkout", flush=True)
        return
    command = Path(sys.executable).with_name("executorch") if installed else COMMAND
    tools = folder / ".tools"
    if not tools.exists():
        tools.mkdir()
        (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (tools / "executorch").write_text(f'#!/bin/sh\nexec "{command}" "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "EXECUTORCH_PYTHON": sys.executable,
        "EXECUTORCH_ROOT": str(ROOT),
    }
    if not installed:
        environment["PYTHONPATH"] = str(ROOT)
    if "$EXECUTORCH_PREFIX" in block.code:
        environment["EXECUTORCH_PREFIX"] = str(_prefix(folder, installed))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{where}: exit status {done.returncode}\n{done.stdout}"


if __name__ == "__main__":
    for each in sys.argv[1:]:
        page = Path(each).resolve()
        with tempfile.TemporaryDirectory() as name:
            run(page, Path(name), installed=True)
        print(f"{page.name}: runs")
