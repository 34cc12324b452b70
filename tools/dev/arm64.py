"""What a cross build for 64-bit ARM needs: compiler and emulator, and libraries in a folder."""

from __future__ import annotations

import os
import shutil

from dev.setup import install_debian_packages
from dev.steps import ROOT, step

PACKAGES = ROOT / "build" / "arm64-packages"
TOOLS = {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64": "qemu-user"}
LIBRARIES = (
    "libcli11-dev",
    "libflatbuffers-dev",
    "libflatbuffers2",
    "libgmock-dev",
    "libgtest-dev",
    "libhwy-dev",
    "libhwy1",
    "libpthreadpool-dev",
    "libpthreadpool0",
    "nlohmann-json3-dev",
)


def setup_arm64() -> None:
    install_debian_packages([pkg for cmd, pkg in TOOLS.items() if shutil.which(cmd) is None])
    ready = PACKAGES / "ready"
    if ready.exists() and ready.read_text().split() == list(LIBRARIES):
        return
    # apt with a state of its own, so that the machine learns of no other architecture.
    state = PACKAGES / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures::": "arm64",
        "APT::Sandbox::User": os.environ.get("USER", "root"),
        "Dir::State": state / "state",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]
    step("arm64: package lists", [*apt, "update"])
    step("arm64: libraries", [*apt, "download", *LIBRARIES], cwd=state)
    for package in sorted(state.glob("*.deb")):
        step(f"arm64: {package.name}", ["dpkg", "-x", str(package), str(PACKAGES)])
    ready.write_text("\n".join(LIBRARIES))
