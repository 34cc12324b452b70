"""The whole product in one test: a PyTorch model becomes a program, and the program runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from executorch.exir import to_edge
from executorch.runtime import Runtime


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls.add_(1)
        return torch.relu(self.linear(x)), self.calls.clone()


def test_a_model_is_exported_and_runs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tiny().eval()
    rows = torch.export.Dim("rows", max=8)
    exported = torch.export.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: rows},))
    program = to_edge(exported).to_executorch()
    program.save(str(tmp_path / "tiny.pte"))

    loaded = Runtime.get().load_program(tmp_path / "tiny.pte")
    method = loaded.load_method("forward")
    assert loaded.method_names == {"forward"}
    assert method.metadata.input_tensor_meta(0).sizes() == (8, 4)

    with torch.no_grad():
        for call, n in enumerate((1, 5, 8), start=1):
            x = torch.randn(n, 4)
            y, calls = method.execute([x])
            # Sums of 5 terms: 2 * 5 roundings between two orders of summation.
            torch.testing.assert_close(y, model(x)[0], rtol=1e-6, atol=10 * 2**-23 * 5)
            assert calls.item() == call

    with pytest.raises(RuntimeError, match="input 0"):
        method.execute([torch.randn(9, 4)])
