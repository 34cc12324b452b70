"""Where JavaScript runs: in Node, or in a page of headless Chromium. Both evaluate expressions."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILD = Path(os.environ.get("EXECUTORCH_WASM_BUILD", ROOT / "build" / "wasm"))
FILES = ("executorch.wasm", "executorch.mjs", "runtime.mjs", "tensor.mjs")
# The example's page and what it imports, in a folder that was copied from an installation.
COPIED = os.environ.get("EXECUTORCH_BROWSER_PAGE")
PACKAGE = Path(COPIED or BUILD / "executorch" / "extension" / "wasm")
MISSING = "executorch.wasm is made by ./dev browser, with Emscripten"


def copy_package(folder: Path) -> None:
    for name in FILES:
        shutil.copy(PACKAGE / name, folder)


class Node:
    """`folder` has the package, helpers.mjs and what expressions load."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            ["node", HERE / "evaluate.mjs"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def value(self, expression: str) -> Any:
        """Of an expression, awaited; what it throws is raised."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(expression) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Node ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("value")

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=30)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A web server for the folder on this machine; its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def chromium_page(folder: Path, profile: Path) -> Iterator[Page]:
    """A page that has what helpers.mjs exports; see Node."""
    (folder / "empty.html").write_text("<!doctype html><title>tests</title>")
    with served(folder) as address, Browser(profile) as browser:
        page = browser.open(f"{address}/empty.html")
        page.wait_for("document.title === 'tests'")
        page.value("import('/helpers.mjs').then((all) => { Object.assign(globalThis, all); })")
        yield page
