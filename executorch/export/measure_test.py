from __future__ import annotations

import torch
from torch import Tensor, nn

from executorch.export import export
from executorch.export.measure import measure


class Writes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x.add_(1))


def test_program_and_model_get_the_same_inputs_though_both_write_them() -> None:
    inputs = (torch.randn(4),)
    before = inputs[0].clone()
    program = export(Writes(), [inputs]).get_pte_buffer()
    assert measure(program, Writes(), inputs, seconds=0).max_error < 1e-6
    assert torch.equal(inputs[0], before)
