"""Applications outside of the tree run programs, built against a package that was moved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built import BUILD, ROOT, needs

PROGRAMS = BUILD / "tests" / "selective_build"
HALVES, DELEGATED = PROGRAMS / "halves.pte", PROGRAMS / "delegated.pte"
FLAGS = ["-std=c++17", "-O0", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
# Of the implementation: other standards, or headers of libraries that applications need not have.
PRIVATE = ("backends/xnnpack/runtime/", "backends/xnnpack/serialization/", "cpu/")
PRIVATE += (
    "extension/aten_util/",
    "extension/llm/custom_ops/",
    "extension/llm/sampler/constraint/",
)
PRIVATE += ("kernels/optimized/", "kernels/portable/internal/")
PRIVATE += ("runtime/core/portable_type/c10/",)

pytestmark = [
    needs(DELEGATED),
    pytest.mark.xdist_group("install"),
]


def configure(folder: Path, *options: str, prefix: Path | None = None) -> str:
    """What CMake prints. Its failure is an AssertionError with that."""
    command = ["cmake", "-S", ROOT / "tests" / "install", "-B", folder, "-G", "Ninja"]
    command += [f"-DPYTHON_EXECUTABLE={sys.executable}", *options]
    if shutil.which("ccache"):
        command += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    if prefix is not None:
        command += [f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(folder: Path, *targets: str) -> None:
    """What an earlier run compiled comes from the compiler cache, in which the prefix is a path
    relative to the project's folder."""
    done = subprocess.run(
        ["ninja", "-C", folder, *targets],
        env=os.environ | {"CCACHE_BASEDIR": str(folder.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def runs(binary: Path, program: Path) -> bool:
    done = subprocess.run([binary, program], capture_output=True, text=True)
    if program == HALVES:
        return done.returncode == 0 and done.stdout.split() == ["0.25"]
    return done.returncode == 0 and len(done.stdout.split()) == 1


def public_headers(prefix: Path) -> Iterator[str]:
    for header in sorted((prefix / "include").rglob("*.h")):
        name = header.relative_to(prefix / "include").as_posix()
        if not name.removeprefix("executorch/").startswith(PRIVATE):
            yield name


@pytest.mark.parametrize("form", ["static", "shared"])
@pytest.mark.parametrize(
    "compiler, flags",
    [("g++", "-fno-exceptions;-fno-rtti"), ("clang++-14", "-fno-exceptions;-fno-rtti")]
    + [("clang++-14", "-fexceptions;-frtti")],
    ids=["g++", "clang++", "clang++ with exceptions"],
)
def test_targets_of_all_spellings_run_programs(
    prefix: Path, tmp_path: Path, form: str, compiler: str, flags: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    options = [f"-DCOMPONENTS={form}", f"-DCMAKE_CXX_COMPILER={compiler}", f"-DFLAGS={flags}"]
    configure(tmp_path, *options, prefix=prefix)
    build(tmp_path, "whole", "parts", "namespaced", "text")
    for name in ("whole", "parts", "namespaced"):
        assert runs(tmp_path / name, HALVES) and runs(tmp_path / name, DELEGATED), name
        needed = subprocess.check_output(["ldd", tmp_path / name], text=True)
        assert ("libexecutorch.so" in needed) == (form == "shared")
    assert subprocess.run([tmp_path / "text"], capture_output=True).returncode == 0


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_every_public_header_is_complete(prefix: Path, tmp_path: Path, compiler: str) -> None:
    found = shutil.which(compiler) or shutil.which(f"{compiler}-14")
    if found is None:
        pytest.skip(f"no {compiler}")
    headers = list(public_headers(prefix))
    assert "executorch/extension/module/module.h" in headers
    assert "executorch/sdk/etdump/etdump_flatcc.h" in headers  # of compat/headers.map
    assert "executorch/schema/program_generated.h" in headers
    options = [f"-DHEADERS={';'.join(headers)}", f"-DCMAKE_CXX_COMPILER={found}"]
    configure(tmp_path, *options, prefix=prefix)
    build(tmp_path, "headers", "whole")
    assert runs(tmp_path / "whole", HALVES) and runs(tmp_path / "whole", DELEGATED)


@pytest.mark.parametrize("package", ["executorch", "executorch-static"])
def test_pkg_config(prefix: Path, tmp_path: Path, package: str) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    command = ["pkg-config", "--cflags", "--libs", package]
    environment = os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = subprocess.check_output(command, env=environment, text=True).split()
    run = ROOT / "tests" / "selective_build" / "run.cpp"
    binary = tmp_path / "run"
    rpath = f"-Wl,-rpath,{prefix / 'lib'}"
    subprocess.run(["g++", *FLAGS, run, "-o", binary, *flags, rpath], check=True)
    assert runs(binary, HALVES) and runs(binary, DELEGATED)


def selected(prefix: Path, folder: Path, *options: str) -> Path:
    configure(folder, f"-DPROGRAM={HALVES}", f"-DDELEGATED={DELEGATED}", *options, prefix=prefix)
    return folder / "selected"


def test_selection_from_a_prefix_has_its_operators_and_backends(
    prefix: Path, tmp_path: Path
) -> None:
    binary = selected(prefix, tmp_path)
    build(tmp_path, "selected", "delegated")
    assert runs(binary, HALVES)
    assert not runs(binary, PROGRAMS / "other.pte")
    assert not runs(binary, DELEGATED)
    assert runs(tmp_path / "delegated", DELEGATED)
    symbols = subprocess.check_output(["nm", "-C", binary], text=True)
    assert "native::softmax_out(" in symbols
    assert "native::convolution_out(" not in symbols
    assert "XnnpackBackend" not in symbols


@pytest.mark.slow
def test_selection_from_a_prefix_has_its_element_types(prefix: Path, tmp_path: Path) -> None:
    binary = selected(prefix, tmp_path, "-DFOR_TYPES=ON")
    build(tmp_path, "selected")
    assert runs(binary, HALVES)
    symbols = subprocess.check_output(["nm", "-C", binary], text=True)
    assert "internal::load<double>(" not in symbols


def test_names_are_those_of_a_folder_in_the_build(tmp_path: Path) -> None:
    configure(tmp_path, f"-DEXECUTORCH_SOURCE={ROOT}", f"-DPROGRAM={HALVES}")
    # The commands are made, and not run: that compiles the runtime again.
    build(tmp_path, "-n", "whole", "parts", "namespaced", "text", "selected")


def test_what_cannot_be_had_is_said(prefix: Path, tmp_path: Path) -> None:
    hidden = "-DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON"
    assert "libexecutorch is linked" in configure(tmp_path / "a", hidden, prefix=prefix)
    with pytest.raises(AssertionError, match=r"static libraries need Highway"):
        configure(tmp_path / "b", hidden, "-DCOMPONENTS=static", prefix=prefix)
    with pytest.raises(AssertionError, match="backend_none"):
        configure(tmp_path / "c", "-DCOMPONENTS=backend_none", prefix=prefix)
    bare = tmp_path / "python"  # with the standard library alone
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(AssertionError, match=r"not\s+have\s+PyYAML"):
        configure(
            tmp_path / "d", f"-DPROGRAM={HALVES}", f"-DPYTHON_EXECUTABLE={bare}", prefix=prefix
        )
