"""The runtime in processes that do not import torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from executorch.extension.pybindings.portable_lib_test import Affine, program_of


@pytest.fixture(scope="module")
def affine() -> bytes:
    return program_of(Affine(), (torch.zeros(4, 3), torch.zeros(4, 3)))


def python(code: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_torch_results_are_numpy_arrays(tmp_path: Path, affine: bytes) -> None:
    path = tmp_path / "affine.pte"
    path.write_bytes(affine)
    python(
        """
import sys
import numpy as np
from executorch.runtime import Runtime
method = Runtime.get().load_program(sys.argv[1]).load_method("forward")
x = np.arange(12, dtype=np.float32).reshape(4, 3)
total, difference = method.execute([x, x])
assert type(total) is np.ndarray and total.dtype == np.float32
assert (total == 3 * x).all() and not difference.any()
total[:] = 0
assert "torch" not in sys.modules
""",
        str(path),
    )


def test_without_torch_bfloat16_is_widened_to_float32(tmp_path: Path) -> None:
    class Thirds(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.bfloat16)

    path = tmp_path / "thirds.pte"
    path.write_bytes(program_of(Thirds(), (torch.ones(3),)))
    printed = python(
        """
import sys
import numpy as np
from executorch.runtime import Runtime
method = Runtime.get().load_program(sys.argv[1]).load_method("forward")
(y,) = method.execute([np.array([1, 2, 3], dtype=np.float32) / 3])
print(y.dtype, y.tolist())
""",
        str(path),
    )
    expected = (torch.tensor([1.0, 2.0, 3.0]) / 3).bfloat16().float().tolist()
    assert printed == f"float32 {expected}\n"


def test_without_torch_and_numpy_results_export_dlpack(tmp_path: Path, affine: bytes) -> None:
    path = tmp_path / "affine.pte"
    path.write_bytes(affine)
    python(
        """
import sys
sys.modules["numpy"] = sys.modules["torch"] = None
from executorch.runtime import Runtime
method = Runtime.get().load_program(sys.argv[1]).load_method("forward")
x = memoryview(bytes(48)).cast("f", (4, 3))
total, _ = method.execute([x, x])
assert total.__dlpack_device__() == (1, 0) and memoryview(total).shape == (4, 3)
""",
        str(path),
    )


def test_importing_the_runtime_is_light() -> None:
    printed = python(
        """
import sys
import executorch.runtime
print("torch" in sys.modules, "numpy" in sys.modules)
"""
    )
    assert printed.split() == ["False", "False"]
