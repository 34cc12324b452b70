"""For WebAssembly: compiler and browser from Debian, the peer from npm, the page of the example."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from dev.setup import PYTHON, install_debian_packages
from dev.steps import ROOT, StepFailed, step

# node and npm may be of another origin than Debian.
TOOLS = {"emcc": "emscripten", "node": "nodejs", "chromium": "chromium"}
ONNXRUNTIME_WEB = "onnxruntime-web@1.30.0"
PACKAGE = ROOT / "build" / "wasm" / "executorch" / "extension" / "wasm"
PAGE = ROOT / "output" / "browser"


def setup_browser() -> None:
    install_debian_packages([pkg for cmd, pkg in TOOLS.items() if shutil.which(cmd) is None])


def copy_page() -> Path:
    """The example's page with the package that it imports; its folder, for any web server."""
    shutil.rmtree(PAGE, ignore_errors=True)
    step("page", [str(PYTHON), "-m", "executorch.examples", "browser", str(PAGE)])
    return PAGE


def install_peer(folder: Path) -> Path:
    """onnxruntime-web below `folder`; where it is, or would be if it cannot be had."""
    installed = folder / "node_modules" / ONNXRUNTIME_WEB.partition("@")[0]
    if not installed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"]
        try:
            step("peer: onnxruntime-web", [*npm, "--prefix", str(folder), ONNXRUNTIME_WEB])
        except StepFailed as e:
            print(f"browser: {ONNXRUNTIME_WEB} is missing: {e}", file=sys.stderr)
    return installed
