"""Programs lowered to XNNPACK, exchanged with upstream: what one side exported gives on the other
what it gives at home.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.interop.sides import SIDES, needs_upstream, start
from tests.interop.xnnpack_cases import CASES

pytestmark = needs_upstream

SCRIPT = Path(__file__).with_name("xnnpack_cases.py")
# Rounded operations on the longest path of any case, one per term of a sum: two convolutions of
# 9 * 16 terms in a row and what follows them, or a linear of 128.
ROUNDINGS = 400
# Between two runtimes an activation may fall on either side of half a step of 8 bits. One such
# step of one of 96 inputs, carried to a result, is below 2 / (255 * sqrt(96)) of its range.
STEP = 2 / (255 * 96**0.5)

# Upstream's layout pass refuses a PReLU of signals.
NOT_EXPORTED_UPSTREAM = ("signals", "signals_dynamic")
# Exported by upstream behind other cases it does not end, in a process of its own it does.
ALONE = ("squeeze_excite_int8",)


@pytest.fixture(scope="session", params=["ours", "upstream"])
def exchanged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what one side exported and the other ran."""
    folder = tmp_path_factory.mktemp(request.param)
    (other,) = SIDES.keys() - {request.param}
    _work(request.param, "export", folder)
    _work(other, "run", folder)
    return folder


def _work(side: str, verb: str, folder: Path) -> None:
    omitted = NOT_EXPORTED_UPSTREAM if (side, verb) == ("upstream", "export") else ()
    names = [n for n in CASES if n not in omitted]
    for part in ([n for n in names if n not in ALONE], [n for n in names if n in ALONE]):
        _work_part(side, verb, folder, part)


def _work_part(side: str, verb: str, folder: Path, left: list[str]) -> None:
    """Starts again behind a case that the process did not survive."""
    while left:
        done = start(side, SCRIPT, folder, verb, str(folder), *left)
        if done.returncode == 0:
            return
        begun = [line for line in done.stdout.splitlines() if line.startswith("case ")]
        assert begun, done.stderr
        left = left[left.index(begun[-1].removeprefix("case ")) + 1 :]


def tolerance(recipe: str, expected: torch.Tensor) -> float:
    """Absolute, from the largest magnitude; half precision is rounded after each node there."""
    if not expected.is_floating_point():
        return 0.0
    scale = float(expected.detach().abs().max())
    steps = {torch.float32: ROUNDINGS, torch.float16: 8, torch.bfloat16: 8}[expected.dtype]
    dynamic = recipe in ("int8_dynamic", "int8_torchao", "int4_group", "int4_channel")
    return scale * (steps * torch.finfo(expected.dtype).eps + (STEP if dynamic else 0))


@pytest.mark.parametrize("name", CASES)
def test_both_runtimes_agree(exchanged: Path, name: str) -> None:
    if "upstream" in exchanged.name and name in NOT_EXPORTED_UPSTREAM:
        pytest.skip("upstream does not export it")
    assert (exchanged / f"{name}.pt").exists(), "was not exported, or does not run at home"
    assert (exchanged / f"{name}.out").exists(), "does not run on the other side"
    recipe = CASES[name]().recipe
    runs = torch.load(exchanged / f"{name}.pt", weights_only=True)
    results = torch.load(exchanged / f"{name}.out", weights_only=True)
    for (_, _, expected), found in zip(runs, results, strict=True):
        for got, want in zip(found, expected, strict=True):
            torch.testing.assert_close(
                got, want, rtol=0, atol=tolerance(recipe, want), check_stride=False
            )
