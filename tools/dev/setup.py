"""Bring a machine to where everything builds: Debian packages, the virtual environment, hooks."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from dev.steps import ROOT, StepFailed, step

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "tools" / "requirements.txt"
# What a Python needs of the build: the native modules and the exporter's operator table.
PYTHON_TARGETS = (
    "portable_lib_stub",
    "exir_native",
    "xnnpack_native",
    "devtools_native",
    "operators_txt",
    "tokenizers_native",
    "llm_runner_native",
)
TORCH = "torch==2.13.0"  # any other spelling pulls gigabytes of GPU packages

# What must be there -> the Debian package that brings it.
COMMANDS = {
    "cmake": "cmake",
    "ninja": "ninja-build",
    "g++": "g++",
    "git": "git",
    "flatc": "flatbuffers-compiler",
    "clang-format": "clang-format",
    "ccache": "ccache",
}
HEADERS = {
    "flatbuffers/flatbuffers.h": "libflatbuffers-dev",
    "gtest/gtest.h": "libgtest-dev",
    "gmock/gmock.h": "libgmock-dev",
    "benchmark/benchmark.h": "libbenchmark-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "CLI/CLI.hpp": "libcli11-dev",
    "pthreadpool.h": "libpthreadpool-dev",
    "hwy/highway.h": "libhwy-dev",
}


def missing_packages() -> list[str]:
    wanted = [pkg for cmd, pkg in COMMANDS.items() if shutil.which(cmd) is None]
    roots = (Path("/usr/include"), Path("/usr/local/include"))
    for header, pkg in HEADERS.items():
        if not any((root / header).exists() for root in roots):
            wanted.append(pkg)
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        wanted.append("python3-dev")
    if subprocess.run(["python3", "-c", "import ensurepip, venv"], capture_output=True).returncode:
        wanted.append("python3-venv")
    return wanted


def install_packages() -> None:
    install_debian_packages(missing_packages())


def install_debian_packages(wanted: list[str]) -> None:
    if not wanted:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise StepFailed(
            "These packages are missing. Run this line, then this command again:\n"
            f"  sudo apt-get install -y {' '.join(wanted)}"
        )
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    step("package lists", ["apt-get", "update"], env=quiet)
    step("Debian packages", ["apt-get", "install", "-y", *wanted], env=quiet)


def make_environment() -> None:
    """Create `.venv` with everything of requirements.txt; nothing to do when it is up to date."""
    stamp = VENV / f"ready-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]}"
    if not stamp.exists():
        if not PYTHON.exists():
            step("virtual environment", ["python3", "-m", "venv", str(VENV)])
        install_python_packages(PYTHON)
        stamp.touch()
    link_checkout(PYTHON)


def install_python_packages(python: Path) -> None:
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    step("PyTorch", [*pip, TORCH])
    step("Python packages", [*pip, "-r", str(REQUIREMENTS)])


def link_checkout(python: Path) -> None:
    """Make `import executorch` find this checkout in `python`."""
    site = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    pth = Path(site, "executorch-dev.pth")
    wanted = f"{ROOT}\n"
    if not pth.exists() or pth.read_text() != wanted:
        pth.write_text(wanted)


def setup() -> None:
    install_packages()
    make_environment()
