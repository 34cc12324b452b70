"""An example of examples/ray as a process with a cluster of its own, which ends in every case."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "ray"
SECONDS = 240  # for what takes 20 on two idle cores


class Example:
    """`python examples/ray/NAME ARGUMENTS`. Everything that it starts knows `home` by its
    environment, by which it is found again."""

    def __init__(self, name: str, *arguments: str | Path) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets' paths are short
        self.log = self.home / "log"
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "RAY_TMPDIR": str(self.home),
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(256 << 20),
        }
        # SIGABRT prints the stack of each thread.
        command = [sys.executable, "-X", "faulthandler", EXAMPLES / name, *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def pids(self) -> list[int]:
        """Its processes: the driver's, the cluster's, the workers'."""
        mark = f"RAY_TMPDIR={self.home}".encode()
        return [pid for pid in processes() if mark in read(pid, "environ").split(b"\0")]

    def workers(self, program: Path) -> list[int]:
        """Those that have mapped the program, but the driver."""
        name = str(program).encode()
        return [p for p in self.pids() if p != self.process.pid and name in read(p, "maps")]

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for `holds()`. Raises AssertionError that says what was awaited, where the driver's
        threads are, and what was printed."""
        end = time.monotonic() + SECONDS
        while not holds():
            ended = self.process.poll()
            assert ended is None or holds(), (
                f"{what}: exit status {ended} before that\n{self.said()}"
            )
            if time.monotonic() > end:
                names = [read(pid, "cmdline")[:60] for pid in self.pids()]
                self.process.send_signal(signal.SIGABRT)
                self.process.wait(10)
                raise AssertionError(f"{what}: not in {SECONDS} s; {names}\n{self.said()}")
            time.sleep(0.02)

    def finish(self) -> str:
        """Wait for its end; what it printed. Raises AssertionError where it failed."""
        self.until("the end", lambda: self.process.poll() is not None)
        assert self.process.returncode == 0, self.said()
        return self.said()

    def left(self) -> list[int]:
        """What is left after the cluster's time to end, which begins with the driver's end."""
        end = time.monotonic() + 10
        while self.pids() and time.monotonic() < end:
            time.sleep(0.1)
        return self.pids()

    def stop(self) -> None:
        """End it like Ctrl-C does, then what is left of it by force."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)
        shutil.rmtree(self.home, ignore_errors=True)


@contextlib.contextmanager
def example(name: str, *arguments: str | Path) -> Iterator[Example]:
    running = Example(name, *arguments)
    try:
        yield running
    finally:
        running.stop()


def processes() -> Iterator[int]:
    return (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())


def read(pid: int, name: str) -> bytes:
    """A file of /proc/PID; empty where the process is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def memory_of(pid: int, program: Path | None = None) -> dict[str, int]:
    """Rss, Pss, Anonymous ... in bytes: of the process, or of its mappings of one file."""
    sums: dict[str, int] = {}
    wanted = program is None
    for line in read(pid, "smaps" if program else "smaps_rollup").decode().splitlines():
        name, *values = line.split()
        if not name.endswith(":"):  # the head of a mapping: addresses ... path
            wanted = program is None or line.endswith(f" {program}")
        elif wanted and values[-1] == "kB":
            key = name.removesuffix(":")
            sums[key] = sums.get(key, 0) + int(values[0]) * 1024
    return sums
