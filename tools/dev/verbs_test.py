"""What the verbs of ./dev promise, without running what they run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from dev import verbs  # noqa: E402


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_help_is_printed_and_nothing_else_happens(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError(f"{verb} --help runs {args}")

    for name in ("setup", "build", "show", "step"):
        monkeypatch.setattr(verbs, name, refuse)
    try:
        assert verbs.main([verb, "--help"]) == 0
    except SystemExit as ended:  # argparse
        assert ended.code == 0
    assert verb in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "--fast"],
        ["golden", "x"],
        ["build", "--all"],
        ["bench", "--no-such"],
        ["help", "--no-such"],
    ],
)
def test_what_a_verb_does_not_take_is_refused_before_anything_happens(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name in ("setup", "build", "show", "step"):
        monkeypatch.setattr(verbs, name, lambda *given: pytest.fail(f"{arguments} runs {given}"))
    assert verbs.main(arguments) == 2
    assert capsys.readouterr().err


def test_help_of_a_verb_is_its_own(capsys: pytest.CaptureFixture) -> None:
    assert verbs.main(["help", "docs"]) == verbs.main(["docs", "--help"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second and "documentation" in first


def test_the_set_up_takes_upstreams_options_and_no_others() -> None:
    script = ROOT / "tools" / "dev" / "install.py"
    for options, status in (
        (["--pybind", "xnnpack", "--minimal", "--help"], 0),
        (["--no-such"], 2),
    ):
        done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True)
        assert done.returncode == status, done.stderr


def test_the_command_runs_where_its_caller_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Path] = []
    monkeypatch.setattr(verbs, "setup", lambda: None)
    monkeypatch.setattr(verbs, "build", lambda *targets: ROOT)
    monkeypatch.setattr(verbs, "show", lambda command, cwd: ran.append(cwd) or 0)
    monkeypatch.chdir(tmp_path)
    assert verbs.main(["executorch", "inspect", "model.pte"]) == 0
    assert ran == [tmp_path]


@pytest.mark.parametrize(
    "announced, n_skipped", [(None, 3), ("EVERYTHING_BUILT", 1), ("EVERYTHING_THERE", 0)]
)
def test_what_is_left_out_fails_where_it_should_be_there(
    tmp_path: Path, announced: str | None, n_skipped: int
) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "left_out_test.py").write_text(
        "import pytest\n"
        "@pytest.mark.skipif(True, reason='the runner is not built')\n"
        "def test_marked(): pass\n"
        "def test_called(): pytest.skip('not built; ./dev build')\n"
        "@pytest.mark.skipif(True, reason='needs another machine')\n"
        "def test_other(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "left_out_test.py"]
    environment = {f"EXECUTORCH_{announced}": "1"} if announced else {}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    found = re.search(r"(\d) skipped", done.stdout)
    assert int(found[1] if found else 0) == n_skipped
    assert done.returncode == int(n_skipped < 3)
    said = re.findall(r"^(?:FAILED|ERROR) .*(?:not built|another machine)", done.stdout, re.M)
    assert len(said) == 3 - n_skipped


def test_benches_that_name_other_runtimes_are_given_their_environment() -> None:
    scripts = (ROOT / "tests" / "bench").glob("[a-z]*.py")
    named = {p.stem for p in scripts if re.search(r"ONNX Runtime|OpenVINO", p.read_text())}
    assert named - {"bench_test"} <= set(verbs.BENCHES_WITH_PEERS)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    for verb in ("help", "lint"):
        command = f"{ROOT / 'dev'} {verb} --help | true; exit ${{PIPESTATUS[0]}}"
        for _ in range(5):  # the reader may be slower than the writer
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
            assert done.stderr == ""


def test_what_is_close_to_no_verb_is_suggested(capsys: pytest.CaptureFixture) -> None:
    assert verbs.main(["tets"]) == 2
    assert "did you mean 'test'?" in capsys.readouterr().err


def test_tests_are_no_benches(capsys: pytest.CaptureFixture) -> None:
    for name in ("bench_test", "_worker", ""):
        assert verbs.main(["bench", name]) == 2
        known = capsys.readouterr().err
        assert "models" in known and "_test" not in known
