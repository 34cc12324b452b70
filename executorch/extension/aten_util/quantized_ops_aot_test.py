"""The library that gives eager PyTorch the out variants of quantized_decomposed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "kernels" / "quantized" / "libquantized_ops_aot_lib.so"

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="not built; ninja quantized_ops_aot_lib"
)

CALLS = """
x = torch.tensor([[1.0, -2.5], [60.0, 0.26]])
q = torch.empty(2, 2, dtype=torch.int8)
ops = torch.ops.quantized_decomposed
assert ops.quantize_per_tensor.out(x, 0.5, 1, -128, 127, torch.int8, out=q) is q
assert torch.equal(q, ops.quantize_per_tensor(x, 0.5, 1, -128, 127, torch.int8))
y = torch.empty(2, 2).t()
ops.dequantize_per_tensor.out(q, 0.5, 1, -128, 127, torch.int8, out=y)
assert torch.equal(y, ops.dequantize_per_tensor(q, 0.5, 1, -128, 127, torch.int8))
scale, zero = torch.empty(1, dtype=torch.double), torch.empty(1, dtype=torch.long)
found = ops.choose_qparams.Tensor_out(
    x, -128, 127, 1e-5, torch.int8, scale_out=scale, zero_point_out=zero
)
expected = ops.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
assert all(torch.allclose(a, b.to(a.dtype)) for a, b in zip(found, expected))
try:
    ops.quantize_per_tensor.out(x, 0.5, 1, -128, 127, torch.uint8, out=q)
except RuntimeError as e:
    assert "the kernel failed" in str(e)
else:
    raise AssertionError("a wrong dtype was accepted")
"""

EXPORTER = "from executorch.kernels import quantized"
DECOMPOSED = "import torch.ao.quantization.fx._decomposed"
LOAD = f"torch.ops.load_library({str(LIBRARY)!r})"


@pytest.mark.parametrize(
    "before",
    [[DECOMPOSED, LOAD], [LOAD, EXPORTER], [EXPORTER, LOAD]],
    ids=["alone", "first", "last"],
)
def test_out_variants_compute_what_pytorch_does(before: list[str]) -> None:
    program = "\n".join(["import torch", *before, CALLS])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
