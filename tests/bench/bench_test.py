"""What the benchmarks promise when a side is wrong or its process ends."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import _compare  # noqa: E402
import _report  # noqa: E402
import llm  # noqa: E402
from _cases import QUANTIZED, Case  # noqa: E402
from _sides import SIDES, Failure  # noqa: E402

OPTIONS = argparse.Namespace(
    target="",
    peers="here,eager,ONNX Runtime",
    upstream="",
    peers_python="",
    build=Path("."),
    rounds=4,
    threads=1,
    turn=0.01,
    limit=1,
)
CASE = Case("identity", "identity", lambda: None, ((4,),))


class _Process:
    pid = 0

    def poll(self) -> int:
        return 1


class _Answers:
    """A worker that ends at its `lasts`-th command."""

    process = _Process()

    def __init__(self, lasts: int) -> None:
        self.left = lasts

    def ask(self, limit: float = 0, **command: object) -> dict:
        self.left -= 1
        if self.left < 0:
            raise Failure("crashed (-11)")
        return {"seconds": [0.5] * command["calls"]}


def _compared(monkeypatch: pytest.MonkeyPatch, lasts: int, outputs: dict) -> _compare.Comparison:
    comparison = _compare.Comparison(OPTIONS)
    comparison.workers = {name: _Answers(lasts if "ONNX" in name else 1000) for name in SIDES}
    monkeypatch.setattr(_compare, "SETTLE", 0)
    monkeypatch.setattr(_compare, "write_inputs", lambda case: [])
    monkeypatch.setattr(_compare, "read_output", lambda answer: answer["output"])
    monkeypatch.setattr(comparison, "worker", lambda side: comparison.workers[side.name])
    monkeypatch.setattr(
        comparison,
        "open",
        lambda side, case, inputs: {
            "flops": 0,
            "bytes": 0,
            "peak": "peak",
            "quantization": 0.02 if case.quantize else 0,
            "output": outputs.get(side.name, np.ones(4)),
        },
    )
    return comparison


def test_a_peer_that_dies_between_rounds_leaves_the_others_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    comparison = _compared(monkeypatch, 4, {})
    row = comparison.measure(CASE, lambda: None)
    assert row["sides"]["ONNX Runtime"] == {"error": "crashed (-11)"}
    assert row["sides"]["here"]["median"] == row["sides"]["eager"]["median"] == 0.5
    assert comparison.died == ["ONNX Runtime in identity: crashed (-11)"]
    assert "ONNX Runtime crashed (-11)" in _report.line("identity", row)


def test_a_quantized_result_may_lie_twice_as_far_as_the_quantized_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = QUANTIZED[0]
    near, far = np.ones(4) * 1.03, np.ones(4) * 1.06
    row = _compared(monkeypatch, 99, {"here": near, "ONNX Runtime": far}).measure(
        case, lambda: None
    )
    assert "median" in row["sides"]["here"]
    assert row["sides"]["ONNX Runtime"]["error"].startswith("wrong: off by 6.0e-02")


def test_an_earlier_build_is_a_side_but_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["models", "--before", "old", "--peers", "here"])
    options = _compare.parse("", "", ["here"])
    assert options.peers == "here,before"
    commands = []
    monkeypatch.setattr(_compare, "Worker", lambda command, threads: commands.append(command))
    for side in ("here", "before"):
        _compare.Comparison(options).worker(SIDES[side])
    assert [Path(c[0]).parent for c in commands] == [
        options.build / "tests" / "bench",
        Path("old") / "tests" / "bench",
    ]
    machine = dict.fromkeys(("threads", "read", "read_1", "peak", "peak_1", "int8", "int8_1"), 1)
    sides = {"here": {"median": 2.0}, "before": {"median": 1.0}}
    rows = {"a": {"work": {"limit": 1, "others": 0}, "sides": sides}}
    cells = [list(c.cells) for c in _report.table("", rows, ["here", "before"], machine).columns]
    assert cells[3] == ["1 s (0.50x)"]
    assert "-" in cells[-1][0]


def test_more_than_the_limit_is_explained() -> None:
    assert _report.share(0.9, 1.0) == "90%"
    assert _report.share(1.2, 1.0) == "120%*"
    machine = dict.fromkeys(("threads", "read", "read_1", "peak", "peak_1", "int8", "int8_1"), 1)
    sides = {"here": {"median": 1.0}}
    for limit, explained in ((0.9, False), (1.2, True)):
        rows = {"a": {"work": {"limit": limit, "others": 0}, "sides": sides}}
        caption = str(_report.table("", rows, ["here"], machine).caption)
        assert ("busy" in caption) == explained


@pytest.mark.parametrize(("form", "near", "far"), [("fp32", 1e-3, 1e-2), ("int4", 0.1, 0.3)])
def test_a_side_of_another_model_has_no_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str, near: float, far: float
) -> None:
    """Rounded weights are off by a tenth here: a side may be off by a fifth, in float not."""
    exact = np.ones(llm.SHAPES["gpt2"].vocabulary, np.float32)
    expected = tmp_path / "expected"
    np.stack([exact, exact * (1.1 if form == "int4" else 1)]).tofile(expected)
    monkeypatch.setattr(llm, "OUTPUT", tmp_path)
    bench = llm.Bench(OPTIONS, "gpt2", form)
    monkeypatch.setattr(bench, "program", lambda *_: expected)
    off = {"eager": near, "llama.cpp": far}
    monkeypatch.setattr(
        bench,
        "ask",
        lambda side, output, **_: (exact * np.float32(1 + off[side])).tofile(output),
    )
    bench.check("eager", None)
    with pytest.raises(Failure, match="wrong: off by"):
        bench.check("llama.cpp", None)
