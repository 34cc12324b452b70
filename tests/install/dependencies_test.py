"""Libraries that a system lacks are taken from pinned releases, or what needs them is left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "executorch/extension/command/CMakeFiles/executorch_command.dir/main.cpp.o"
RELEASE = """
add_library({name} INTERFACE)
add_library({name}::{name} ALIAS {name})
target_include_directories({name} INTERFACE ${{CMAKE_CURRENT_SOURCE_DIR}}/include)
"""


def configure(folder: Path, *options: str) -> str:
    command = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DEXECUTORCH_BUILD_TESTS=OFF"]
    command += [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("nlohmann_json", "CLI11")]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def command_of(folder: Path) -> str:
    """How the command's first file is compiled; empty where it is not built."""
    command = ["ninja", "-C", folder, "-t", "commands", "-s", COMMAND]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def test_pinned_releases_stand_for_what_is_not_found(tmp_path: Path) -> None:
    sources = []
    for name in ("nlohmann_json", "CLI11"):
        release = tmp_path / name
        (release / "include").mkdir(parents=True)
        (release / "CMakeLists.txt").write_text(RELEASE.format(name=name))
        sources.append(f"-DFETCHCONTENT_SOURCE_DIR_{name.upper()}={release}")
    said = configure(tmp_path / "build", *sources)
    assert "nlohmann_json was not found; using https://github.com/nlohmann/json.git, v" in said
    compiled = command_of(tmp_path / "build")
    for name in ("nlohmann_json", "CLI11"):
        assert f"-isystem {tmp_path / name / 'include'} " in compiled


def test_without_a_network_the_tools_are_left_out(tmp_path: Path) -> None:
    said = configure(tmp_path, "-DFETCHCONTENT_FULLY_DISCONNECTED=ON")
    assert "executorch and executor_runner are not built: they need CLI11 and nlohmann-json" in said
    assert command_of(tmp_path) == ""


def test_what_everything_needs_is_named(tmp_path: Path) -> None:
    hidden = "-DCMAKE_DISABLE_FIND_PACKAGE_FlatBuffers=ON"
    with pytest.raises(AssertionError, match=r"install\s+libflatbuffers-dev"):
        configure(tmp_path, hidden, "-DFETCHCONTENT_FULLY_DISCONNECTED=ON")
