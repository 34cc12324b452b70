"""Run commands as named steps: one line each with a bar or the time, the whole output in a log."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "logs"
NINJA = re.compile(rb"^\[(\d+)/(\d+)\]")


class StepFailed(Exception):
    """A command ended with a non-zero status; its last output has been printed."""


def step(name: str, command: list[str], *, cwd: Path = ROOT, env: dict | None = None) -> None:
    """Run `command` quietly; show progress; on failure print the end of its output and raise."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".log")
    display = _Display(name)
    with log_path.open("wb") as log:
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as e:
            display.close("failed")
            raise StepFailed(f"{name}: cannot run {command[0]}: {e.strerror}") from e
        try:
            _follow(process, log, display)
        except BaseException:
            process.terminate()
            raise
    if process.wait() != 0:
        display.close("failed")
        tail = log_path.read_text(errors="replace").splitlines()[-60:]
        print("\n".join(tail), file=sys.stderr)
        raise StepFailed(f"{name}: exit status {process.returncode}; log: {log_path}")
    display.close("done")


def show(command: list[str], *, cwd: Path = ROOT, env: dict | None = None) -> int:
    """Run `command` with the terminal as its own; return its exit status."""
    sys.stdout.flush()
    return subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}).returncode


def _follow(process: subprocess.Popen, log, display: _Display) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest = b""
        while True:
            if selector.select(timeout=0.2):
                chunk = os.read(process.stdout.fileno(), 65536)
                if not chunk:
                    return
                log.write(chunk)
                *lines, rest = re.split(rb"[\r\n]", rest + chunk)
                for line in lines:
                    display.line(line)
            display.draw()


class _Display:
    """One line that is redrawn on a terminal, or a start and an end line elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = time.monotonic()
        self.share: float | None = None
        self.live = sys.stdout.isatty()
        if not self.live:
            print(f"{name} ...", flush=True)

    def line(self, line: bytes) -> None:
        if m := NINJA.match(line):
            self.share = int(m[1]) / int(m[2])

    def draw(self) -> None:
        if not self.live:
            return
        width = 30
        seconds = time.monotonic() - self.start
        if self.share is None:  # no known end: a block that walks
            at = int(seconds * 8) % (width - 4)
            bar = " " * at + "━━━━" + " " * (width - 4 - at)
        else:
            bar = ("━" * round(self.share * width)).ljust(width)
        sys.stdout.write(f"\r\x1b[K{self.name:32} {bar} {seconds:5.0f} s")
        sys.stdout.flush()

    def close(self, result: str) -> None:
        seconds = time.monotonic() - self.start
        text = f"{self.name:32} {result}, {seconds:.1f} s"
        print(f"\r\x1b[K{text}" if self.live else text, flush=True)
