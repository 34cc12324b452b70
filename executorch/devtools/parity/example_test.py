"""How commands end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from executorch.devtools.parity.example import end_of

PRINTS = "import sys; from executorch.devtools.parity.example import end_of\n"
PRINTS += "sys.exit(end_of('command', lambda: ('text ' * 10_000, 3)))"


def raising(error: BaseException) -> tuple[str, int]:
    raise error


def test_a_command_ends_with_a_text_or_with_a_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert end_of("command", lambda: ("text", 1)) == 1
    assert end_of("command", lambda: raising(ValueError("no such model"))) == 2
    assert end_of("command", lambda: raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("text\n", "command: no such model\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_a_cause() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", PRINTS], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    said = b"command: cannot write to the standard output: No space left on device\n"
    assert done.stderr == said


def test_a_reader_that_went_away_is_none() -> None:
    command = [sys.executable, "-c", PRINTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 3
