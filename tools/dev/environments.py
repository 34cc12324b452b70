"""The virtual environments of what the product is compared with, made when they are first used."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from dev.setup import TORCH
from dev.steps import ROOT, step

UPSTREAM = ROOT / ".venv-upstream"
PEERS = ROOT / ".venv-peers"
LLAMA_CPP = "@node-llama-cpp/linux-x64@3.22.1"  # prebuilt, for each instruction set


def make_upstream() -> None:
    """Upstream's wheel in an environment of its own."""
    make_virtual_environment(UPSTREAM, "upstream", "executorch==1.5.1", "psutil")


def make_peers() -> None:
    """The other runtimes that the benchmark compares with, in an environment of their own."""
    requirements = ROOT / "tests" / "bench" / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    make_virtual_environment(PEERS, "peers", "-r", str(requirements), stamp=f"ready-{digest}")
    if (PEERS / "node_modules" / LLAMA_CPP.rpartition("@")[0]).exists() or not shutil.which("npm"):
        return
    npm = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(PEERS)]
    step("peers: llama.cpp", [*npm, LLAMA_CPP])


def make_virtual_environment(folder: Path, name: str, *packages: str, stamp: str = "ready") -> None:
    ready = folder / stamp
    if ready.exists():
        return
    python3 = folder / "bin" / "python"
    if not python3.exists():
        step(f"{name}: environment", ["python3", "-m", "venv", str(folder)])
    pip = [str(python3), "-m", "pip", "install", "--disable-pip-version-check"]
    step(f"{name}: PyTorch", [*pip, TORCH])
    step(f"{name}: packages", [*pip, *packages])
    ready.touch()
