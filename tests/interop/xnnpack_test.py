"""Programs that upstream lowered to XNNPACK give here what they give there.

Needs the interpreter of an environment with upstream's wheel in EXECUTORCH_UPSTREAM_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch

from executorch.runtime import Runtime
from tests.interop.xnnpack_cases import CASES

UPSTREAM = os.environ.get("EXECUTORCH_UPSTREAM_PYTHON")
pytestmark = pytest.mark.skipif(not UPSTREAM, reason="EXECUTORCH_UPSTREAM_PYTHON is not set")

# Rounded operations on the longest path of any case, one per term of a sum: two convolutions of
# 9 * 16 terms in a row and what follows them, or a linear of 128.
ROUNDINGS = 400
# Between two runtimes an activation may fall on either side of half a step of 8 bits. One such
# step of one of 96 inputs, carried to a result, is below 2 / (255 * sqrt(96)) of its range.
STEP = 2 / (255 * 96**0.5)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("xnnpack")
    script = Path(__file__).with_name("xnnpack_cases.py")
    subprocess.run([str(UPSTREAM), str(script), str(folder)], cwd=folder, capture_output=True)
    return folder


def tolerance(recipe: str, expected: torch.Tensor) -> float:
    """Absolute, from the largest magnitude; half precision is rounded after each node there."""
    if not expected.is_floating_point():
        return 0.0
    scale = float(expected.detach().abs().max())
    steps = {torch.float32: ROUNDINGS, torch.float16: 8, torch.bfloat16: 8}[expected.dtype]
    dynamic = recipe in ("int8_dynamic", "int8_torchao", "int4_group", "int4_channel")
    return scale * (steps * torch.finfo(expected.dtype).eps + (STEP if dynamic else 0))


@pytest.mark.parametrize("name", CASES)
def test_equals_upstreams_runtime(programs: Path, name: str) -> None:
    assert (programs / f"{name}.pt").exists(), "upstream did not export or run it"
    method = Runtime.get().load_program(programs / f"{name}.pte").load_method("forward")
    assert method is not None
    recipe = CASES[name]().recipe
    for inputs, _, expected in torch.load(programs / f"{name}.pt", weights_only=True):
        found = method.execute(inputs)
        assert len(found) == len(expected)
        for got, want in zip(found, expected, strict=True):
            torch.testing.assert_close(
                got, want, rtol=0, atol=tolerance(recipe, want), check_stride=False
            )
