from __future__ import annotations

import torch
from torch import Tensor, nn

from executorch.devtools.inspector._numeric_gap import capture


def test_inputs_that_the_program_writes_stay_as_they_are_given() -> None:
    class Writes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sin(x.add_(1))

    x = torch.ones(3)
    program = torch.export.export(Writes(), (x.clone(),))
    (sin,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default)
    for _ in range(2):
        assert torch.equal(capture(program, (x,), [sin])[sin], torch.full((3,), 2.0).sin())
    assert torch.equal(x, torch.ones(3))
