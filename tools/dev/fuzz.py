"""What the fuzzers are given, and how they are run."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from dev.setup import PYTHON, install_debian_packages
from dev.steps import ROOT, StepFailed, show, step

SEEDS = ROOT / "output" / "fuzz"
FUZZERS = ("pte_flip", "program_fuzz", "delegate_fuzz", "text_fuzz")
GUIDED = ("guided_fuzz",)


def options(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("./dev fuzz", description=description)
    add = parser.add_argument
    add("--seconds", type=float, default=60, metavar="N", help="time of each fuzzer")
    operators = "run the fuzzer of operators alone, for those of exir/operators.txt that match"
    add("--operators", metavar="REGEX", help=operators)
    add("--json", metavar="FILE", help="write outcomes by operator, and findings")
    release = "without sanitizers, which is faster; memory ends at guard pages"
    add("--release", action="store_true", help=release)
    add("--workers", type=int, default=2, metavar="N", help="number of processes")
    guided = "let Clang's libFuzzer search readers that match, for bytes that reach new branches"
    add("--guided", metavar="REGEX", type=_regex, help=guided)
    return parser


def _regex(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {e}") from e


def setup_guided() -> None:
    install_debian_packages([] if shutil.which("clang++-14") else ["clang-14"])


def programs() -> list[str]:
    """Small programs that together hold every kind of value and instruction."""
    folder = SEEDS / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("*.pte")):
        step("small programs", [str(PYTHON), "tests/fuzz/make_seeds.py", str(folder)])
    return sorted(str(p) for p in folder.glob("*.pte"))


def written(module: str, folder: str) -> str:
    """The folder of what a module of tests/fuzz writes."""
    to = str(SEEDS / folder)
    if show([str(PYTHON), "-W", "ignore", "-m", f"tests.fuzz.{module}", to], cwd=ROOT):
        raise StepFailed(f"tests.fuzz.{module} failed")
    return to


def run_all(folder: Path, chosen: argparse.Namespace) -> int:
    seconds = ["--seconds", str(chosen.seconds)]
    fields = [str(folder / "program_fuzz"), *seconds, "--workers", str(chosen.workers)]
    fields += ["--findings", str(SEEDS / "findings")]
    fields += ["--operators", chosen.operators] if chosen.operators else []
    fields += ["--json", str(Path(chosen.json).resolve())] if chosen.json else []
    seeds = [written("operator_seeds", "operators"), written("model_seeds", "models")]
    small = programs()
    changed = show([*fields, *seeds, *small])
    if chosen.operators:
        return changed
    flipped = show([str(folder / "pte_flip"), *seconds, *small])
    payloads = [p for p in small if "delegated" in p]
    damaged = show([str(folder / "delegate_fuzz"), *seconds, *payloads])
    texts = show([str(folder / "text_fuzz"), *seconds, written("text_seeds", "texts")])
    return texts or damaged or changed or flipped


def run_guided(folder: Path, chosen: argparse.Namespace) -> int:
    """Each reader goes on where it stopped: what reached new branches is kept."""
    written("operator_seeds", "operators")
    folders = [Path(programs()[0]).parent, SEEDS / "operators"]
    texts = sorted(Path(written("text_seeds", "texts")).iterdir())
    seeds = {"program": folders, "file": folders} | {text.name: [text] for text in texts}
    readers = [name for name in seeds if chosen.guided.search(name)]
    if not readers:
        raise StepFailed(f"--guided {chosen.guided.pattern}: there are {', '.join(seeds)}")
    findings = SEEDS / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    failed = 0
    for reader in readers:
        corpus = SEEDS / "corpus" / reader
        corpus.mkdir(parents=True, exist_ok=True)
        print(f"{reader}:", flush=True)
        limits = ["-timeout=20", "-rss_limit_mb=3072", "-print_final_stats=1", "-verbosity=0"]
        command = [str(folder / "guided_fuzz"), f"--reader={reader}", *limits]
        seconds = max(1, round(chosen.seconds))  # 0 would be without end
        command += [f"-max_total_time={seconds}", f"-artifact_prefix={findings}/"]
        failed |= show([*command, str(corpus), *map(str, seeds[reader])])
    return failed
