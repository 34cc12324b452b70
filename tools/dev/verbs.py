"""The verbs of ./dev. Each is one function; its docstring is its help."""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from dev import fuzz
from dev.arm64 import setup_arm64
from dev.browser import copy_page, install_peer, setup_browser
from dev.environments import PEERS, UPSTREAM, make_peers, make_upstream, make_virtual_environment
from dev.setup import PYTHON, PYTHON_TARGETS, VENV, link_checkout, setup
from dev.steps import ROOT, StepFailed, show, step
from dev.wheel import RAY_PACKAGES, build_wheel, setup_tries

BUILD = ROOT / "build" / "dev"
OUTPUT = ROOT / "output"
NANOGPT = ROOT / "examples" / "nanogpt"
DOCS = ROOT / ".venv-docs"
RAY = ROOT / ".venv-ray"
JOBS = str(os.cpu_count() or 2)
BENCHES_WITH_PEERS = ("models", "quantized", "kernels", "llm")  # of PEERS

# A test that says "not built" fails: conftest.py.
EVERYTHING_BUILT = {"EXECUTORCH_EVERYTHING_BUILT": "1"}

# What the package uses of Python and its library is there in the oldest release it is for.
VERMIN = [str(VENV / "bin" / "vermin"), "-t=3.10-", "--no-tips", "--violations", "-q"]

Verb = Callable[..., int]  # of the arguments; one without parameters takes none


def build(preset: str = "dev", *targets: str) -> Path:
    """Configure and build a preset of CMakePresets.json; return its folder."""
    folder = ROOT / "build" / preset
    if not (folder / "build.ninja").exists():
        ccache = [
            f"-DCMAKE_{lang}_COMPILER_LAUNCHER={ROOT / 'tools/dev/cached_compiler'}"
            for lang in ("C", "CXX")
            if shutil.which("ccache")
        ]
        step(f"configure {preset}", ["cmake", "--preset", preset, *ccache])
    step(f"build {preset}", ["ninja", "-C", str(folder), "-j", JOBS, *targets])
    return folder


def python(*args: str, cwd: Path = ROOT) -> int:
    return show([str(PYTHON), *args], cwd=cwd)


def ctest(folder: Path) -> int:
    return show(["ctest", "--output-on-failure", "-j", JOBS], cwd=folder)


def verb_setup() -> int:
    """Install what is missing and make the virtual environment."""
    setup()
    return 0


def verb_build(args: list[str]) -> int:
    """Build everything, or one preset: ./dev build [PRESET [TARGET...]]."""
    listed = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    presets = [preset["name"] for preset in listed]
    if args and args[0] not in presets:
        print(f"dev: no preset {args[0]!r}; there are: {', '.join(presets)}", file=sys.stderr)
        return 2
    setup()
    build(*(args or ["dev"]))
    return 0


def verb_demo(args: list[str]) -> int:
    """Export the shipped GPT and let `executorch generate` go on: ./dev demo [PROMPT]."""
    setup()
    build("dev", "executorch_command", *PYTHON_TARGETS)
    OUTPUT.mkdir(exist_ok=True)
    step("export nanogpt.pte", [str(PYTHON), str(NANOGPT / "export_nanogpt.py")], cwd=OUTPUT)
    prompt = " ".join(args) or "ROMEO:"
    command = BUILD / "executorch" / "extension" / "command" / "executorch"
    arguments = ["--prompt", prompt, "--echo", "--tokens", "120", "--seed", "1"]
    return show([str(command), "generate", str(OUTPUT / "nanogpt.pte"), *arguments])


def verb_test(args: list[str]) -> int:
    """Build, lint, and run every test, for WebAssembly too where emcc is installed; or run those
    that pytest's arguments select."""
    setup()
    build("dev")
    pytest = [str(PYTHON), "-m", "pytest"]
    if args:
        return show([*pytest, *args], env=EVERYTHING_BUILT)
    if shutil.which("emcc") is not None:  # `./dev browser` installs it
        build("wasm", "executorch_wasm_package")
    lint = verb_lint()
    cpp = ctest(BUILD)
    tests = show([*pytest, "-n", JOBS, "--dist", "loadgroup"], env=EVERYTHING_BUILT)
    return lint or cpp or tests


def verb_tiny() -> int:
    """The one fast test that shows the whole product."""
    setup()
    build("dev", *PYTHON_TARGETS)
    return python("-m", "pytest", "tests/test_tiny.py")


def verb_lint() -> int:
    """Check formats, types, the layer table, torch's names, the oldest Python, and that nothing
    aborts."""
    sources = _tracked("*.h", "*.cpp")
    checks = {
        "clang-format": ["clang-format", "--dry-run", "--Werror", *sources],
        "ruff format": [str(VENV / "bin" / "ruff"), "format", "--check", "-q", "."],
        "ruff": [str(VENV / "bin" / "ruff"), "check", "-q", "."],
        "oldest Python": [*VERMIN, "executorch"],
        "mypy": [str(PYTHON), "-m", "mypy", "executorch/exir"],
        "layers": [str(PYTHON), "tools/check_layers.py"],
        "torch names": [str(PYTHON), "tools/check_torch_names.py"],
        "aborts": [str(PYTHON), "tools/check_aborts.py"],
    }
    failed = 0
    for name, command in checks.items():
        try:
            step(f"lint: {name}", command)
        except StepFailed:
            failed += 1
    return failed


def verb_format() -> int:
    """Rewrite all sources in the project's format."""
    ruff = str(VENV / "bin" / "ruff")
    return (
        show(["clang-format", "-i", *_tracked("*.h", "*.cpp")])
        or show([ruff, "check", "-q", "--fix", "."])
        or show([ruff, "format", "-q", "."])
    )


def verb_asan() -> int:
    """Run the C++ tests, and those of the commands, under AddressSanitizer and
    UndefinedBehaviorSanitizer."""
    setup()
    build("dev", *PYTHON_TARGETS)
    folder = build("asan")
    cpp = ctest(folder)
    commands = ["executorch/extension/command", "executorch/extension/executor_runner"]
    sanitized = {"EXECUTORCH_BUILD": str(folder)}
    return cpp | show([str(PYTHON), "-m", "pytest", *commands], env=sanitized)


def verb_tsan() -> int:
    """Run the C++ tests under ThreadSanitizer."""
    setup()
    return ctest(build("tsan"))


def verb_arm64(args: list[str]) -> int:
    """Build for 64-bit ARM (NEON) and run tests under qemu: ./dev arm64 [TEST...], or cpu_test."""
    setup()
    setup_arm64()
    tests = args or ["cpu_test"]
    folder = build("arm64", *tests)
    pattern = f"^({'|'.join(tests)})$"
    return show(["ctest", "--output-on-failure", "--verbose", "-R", pattern], cwd=folder)


def verb_browser(args: list[str]) -> int:
    """Build for WebAssembly, test under Node and in Chromium, and print size and speed beside
    onnxruntime-web: ./dev browser [--tests]. Makes output/browser, a page that runs programs."""
    options = argparse.ArgumentParser("./dev browser", description=verb_browser.__doc__)
    options.add_argument("--tests", action="store_true", help="only test, do not measure")
    chosen = options.parse_args(args)
    setup()
    setup_browser()
    build("dev", *PYTHON_TARGETS)
    build("wasm", "executorch_wasm_package")
    print(f"{copy_page() / 'index.html'}")
    tests = python("-m", "pytest", "tests/wasm", "-n", "0")
    if chosen.tests:
        return tests
    environment = []
    try:
        make_peers()
        environment = ["--peers-python", str(PEERS / "bin" / "python")]
    except StepFailed as e:  # the sizes and this side's times can still be had
        print(f"browser: {PEERS.name} is missing: {e}", file=sys.stderr)
    peer = ["--onnxruntime-web", str(install_peer(PEERS / "web"))]
    return python("tests/bench/_browser.py", *environment, *peer) or tests


def verb_fuzz(args: list[str]) -> int:
    """Run damaged programs, payloads and texts: ./dev fuzz [--seconds N] [--operators REGEX]
    [--json FILE] [--release] [--guided REGEX]. Four fuzzers run one after the other, under
    sanitizers: of several fields of each operator's calls at once, of the bytes of small programs,
    of delegates' payloads, and of texts (tokenizer files, constraints, requests). --guided '.'
    searches with Clang's libFuzzer instead, one reader after the other."""
    chosen = fuzz.options(verb_fuzz.__doc__).parse_args(args)
    setup()
    build("dev", *PYTHON_TARGETS)
    if chosen.guided is not None:
        fuzz.setup_guided()
        return fuzz.run_guided(build("guided", *fuzz.GUIDED) / "tests" / "fuzz", chosen)
    preset = "dev" if chosen.release else "asan"
    return fuzz.run_all(build(preset, *fuzz.FUZZERS) / "tests" / "fuzz", chosen)


def verb_allocations(args: list[str]) -> int:
    """Load and run small programs with every allocation failing once: ./dev allocations
    [--program NAME] [--way NAME] [--at N]. Also under sanitizers, which see what leaks."""
    setup()
    build("dev", *PYTHON_TARGETS)
    programs = OUTPUT / "allocations"
    programs.mkdir(parents=True, exist_ok=True)
    step("small programs", [str(PYTHON), "tests/fuzz/make_seeds.py", str(programs)])
    paths = sorted(str(p) for p in programs.glob("*.pte"))
    failed = 0
    for preset in ("dev", "asan"):
        folder = build(preset, "allocation_failures")
        print(f"build/{preset}:")
        failed |= show([str(folder / "tests" / "fuzz" / "allocation_failures"), *args, *paths])
    return failed


def verb_size(args: list[str]) -> int:
    """Print the size of the runtime without kernels: ./dev size; or of applications with the
    operators of an MLP, a GPT and MobileNetV2: ./dev size --models [--types]."""
    options = argparse.ArgumentParser("./dev size", description=verb_size.__doc__)
    models = "applications that link the installed package"
    options.add_argument("--models", action="store_true", help=models)
    types = "compile the kernels for the models' element types only, which takes minutes"
    options.add_argument("--types", action="store_true", help=types)
    chosen = options.parse_args(args)
    setup()
    if chosen.models or chosen.types:
        folder = build("dev", "executorch_install_targets", *PYTHON_TARGETS)
        return python("tests/size/models.py", str(folder), *(["--types"] if chosen.types else []))
    folder = build("size", "size_test")
    return python("tests/size/report.py", str(folder / "tests" / "size" / "size_test"))


def verb_executorch(args: list[str]) -> int:
    """Build and run the `executorch` command where you are: ./dev executorch profile model.pte."""
    setup()
    build("dev", "executorch_command")
    command = BUILD / "executorch" / "extension" / "command" / "executorch"
    return show([str(command), *args], cwd=Path.cwd())


def verb_wheel(args: list[str]) -> int:
    """Build the wheel and the sdist into dist/, and try the wheel in an environment of its own:
    ./dev wheel [--with-torch]. The libraries that the wheel needs are put inside (auditwheel)."""
    options = argparse.ArgumentParser("./dev wheel", description=verb_wheel.__doc__)
    with_torch = "install PyTorch there as well, export programs, and run all pages of docs/"
    options.add_argument("--with-torch", action="store_true", help=with_torch)
    chosen = options.parse_args(args)
    setup()
    setup_browser()
    setup_tries()
    c_interface = ("executorch_install_targets", "executorch_c", "c_api_test")
    build("dev", *PYTHON_TARGETS, "selective_build_programs", *c_interface)
    build("wasm", "executorch_wasm_package")
    return build_wheel(chosen.with_torch)


def verb_golden() -> int:
    """Rewrite the golden text dumps in tests/golden from today's exporter."""
    setup()
    build("dev")
    update = {"EXECUTORCH_UPDATE_GOLDENS": "1"}
    return show([str(PYTHON), "-m", "pytest", "tests/golden"], env=update)


def verb_bench(args: list[str]) -> int:
    """Measure beside peers: ./dev bench models|quantized|kernels|streams|tracing|...
    [OPTION...]; `./dev bench NAME --help` lists the options of one."""
    folder = ROOT / "tests" / "bench"
    scripts = sorted(p.stem for p in folder.glob("[a-z]*.py") if not p.stem.endswith("_test"))
    # A script called tokenizers.py would hide the package from the others.
    name = {"tokenizers": "tokenizing"}.get(args[0], args[0]) if args else ""
    script = folder / f"{name}.py"
    if name not in scripts:
        known = ", ".join(scripts)
        print(f"usage: ./dev bench NAME [--help]; there are: {known}", file=sys.stderr)
        return 2
    if {"-h", "--help"} & set(args):
        return python(str(script), "--help")
    setup()
    build("dev")
    if script.stem == "tracing":
        build("untraced", "bench_runner")
    if script.stem == "neon":
        setup_arm64()
        build("arm64", "bench_runner")
    if script.stem in ("tokenizing", "neon", "sweep"):
        return python(str(script), *args[1:])
    environments = []
    for flag, make, folder in (
        ("--upstream", make_upstream, UPSTREAM),
        ("--peers-python", make_peers, PEERS),
    ):
        if make is make_peers and script.stem not in BENCHES_WITH_PEERS:
            continue
        try:
            make()
            environments += [flag, str(folder / "bin" / "python")]
        except StepFailed as e:  # the others can still be compared
            print(f"bench: {folder.name} is missing: {e}", file=sys.stderr)
    return python(str(script), *environments, *args[1:])


def verb_docs() -> int:
    """Build the documentation into output/site; a link that leads nowhere is an error."""
    python3 = DOCS / "bin" / "python"
    if not (DOCS / "ready").exists():
        step("docs: environment", ["python3", "-m", "venv", str(DOCS)])
        step("docs: packages", [str(python3), "-m", "pip", "install", "mkdocs>=1.6,<2"])
        (DOCS / "ready").touch()
    step("docs", [str(python3), "-m", "mkdocs", "build", "--clean", "--strict"])
    print(f"{OUTPUT / 'site' / 'index.html'}")
    return 0


def verb_ray(args: list[str]) -> int:
    """Test examples/ray and its page on a local Ray cluster, and print its throughput beside one
    process's: ./dev ray [pytest's arguments, for the tests alone]."""
    setup()
    build("dev", "executorch_command", *PYTHON_TARGETS)
    make_virtual_environment(RAY, "ray", *RAY_PACKAGES, "numpy", "pytest", "rich", "tabulate")
    python3 = RAY / "bin" / "python"
    link_checkout(python3)
    page = ["tests/readme/pages_test.py::test_the_code_of_a_page_runs[ray]"]
    tests = [str(python3), "-m", "pytest", "-p", "no:cacheprovider"]
    if args:
        return show([*tests, *args])
    failed = show([*tests, "tests/ray", *page])
    return failed or show([str(python3), "tests/ray/throughput.py"])


def verb_conformance(args: list[str]) -> int:
    """Run every operator against eager PyTorch: ./dev conformance [--ops REGEX]
    [--dtypes TYPE...] [--samples N] [--jobs N] [--json FILE]."""
    setup()
    build("dev", *PYTHON_TARGETS)
    return python("-m", "tests.conformance", *args)


def verb_tokenizers(args: list[str]) -> int:
    """Compare tokens with those of the reference libraries: ./dev tokenizers [STRINGS]."""
    setup()
    build("dev", "tokenizers_native")
    return python("tests/tokenizers/differential.py", *args)


def verb_interop(args: list[str]) -> int:
    """Exchange programs, XNNPACK payloads, traces, bundles and records with upstream's wheel, both
    ways, and compare with eager PyTorch: ./dev interop [--json FILE] [CASE...]. Cases select
    exchanged programs, and leave out the rest."""
    setup()
    build("dev")
    make_upstream()
    interpreter = str(UPSTREAM / "bin" / "python")
    programs = python("-m", "tests.interop", "--upstream", interpreter, *args)
    if any(not arg.startswith("-") and not arg.endswith(".json") for arg in args):
        return programs
    needed = {"EXECUTORCH_UPSTREAM_PYTHON": interpreter}
    suites = ["-m", "pytest", "tests/interop", "-n", JOBS, "--dist", "loadfile"]
    return programs | show([str(PYTHON), *suites], env=EVERYTHING_BUILT | needed)


def verb_seeds(args: list[str]) -> int:
    """Run the snippets of the tutorial texts and print the table of rows: ./dev seeds [GROUP...].
    The texts must be there."""
    setup()
    build("dev")
    return python("-m", "tests.seeds", *args)


def _tracked(*patterns: str) -> list[str]:
    """Files git knows or would take, so that nothing generated is checked."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).split("\n")
    return [f for f in listed if f and (ROOT / f).exists()]


def verb_help() -> int:
    """Print this list; ./dev help VERB prints what one does."""
    print("usage: ./dev VERB [arguments]\n\nexample: ./dev demo 'Once upon a time'\n")
    for name, verb in VERBS.items():
        text = " ".join((verb.__doc__ or "").split())
        print(textwrap.fill(text, 100, initial_indent=f"  {name:12}", subsequent_indent=" " * 14))
    return 0


VERBS: dict[str, Verb] = {
    name.removeprefix("verb_"): function
    for name, function in list(globals().items())
    if name.startswith("verb_")
}


def asks_for_help(verb: str, args: list[str]) -> bool:
    """Whether to print the verb's docstring alone. Some verbs, and what others run, print more."""
    asks = {"-h", "--help"}
    if verb in ("executorch", "bench", "test"):
        return bool(args) and args[0] in asks
    return verb not in ("browser", "fuzz", "size", "wheel") and bool(asks & set(args))


def run_verb(argv: list[str]) -> int:
    name = {"-h": "help", "--help": "help"}.get(argv[0], argv[0]) if argv else "help"
    if name not in VERBS:
        close = difflib.get_close_matches(name, VERBS, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        print(f"dev: no verb {name!r}{meant}; ./dev help lists them", file=sys.stderr)
        return 2
    if asks_for_help(name, argv[1:]):
        print(f"./dev {name}: {inspect.cleandoc(VERBS[name].__doc__ or '')}")
        return 0
    if name == "help" and argv[1:]:
        return run_verb([argv[1], "--help"])
    takes = inspect.signature(VERBS[name]).parameters
    if argv[1:] and not takes:
        print(f"dev: {name} takes no arguments, found {' '.join(argv[1:])}", file=sys.stderr)
        return 2
    return VERBS[name](argv[1:]) if takes else VERBS[name]()


def main(argv: list[str]) -> int:
    try:
        status = run_verb(argv)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # of a reader such as head, which has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except StepFailed as e:
        print(f"dev: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
