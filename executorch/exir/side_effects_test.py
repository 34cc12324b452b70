from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from executorch.exir.side_effects import unchanged_buffers


class Kept(nn.Module):
    written: Tensor
    grown: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("written", torch.zeros(2))
        self.register_buffer("grown", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.written.add_(x)
        self.grown = torch.cat([self.grown, x])
        if x.shape[0] == 1:
            raise RuntimeError("one")
        return self.written


def test_what_calls_write_or_replace_is_put_back() -> None:
    model = Kept()
    written = model.written
    with unchanged_buffers(model):
        model(torch.ones(2))
        assert model.written.tolist() == [1, 1] and model.grown.tolist() == [0, 1, 1]
    assert model.written is written
    assert written.tolist() == [0, 0] and model.grown.tolist() == [0]


def test_so_is_what_a_call_wrote_before_it_failed() -> None:
    model = Kept()
    with pytest.raises(RuntimeError, match="one"), unchanged_buffers(model):
        model(torch.ones(1))
    assert model.written.tolist() == [0, 0] and model.grown.tolist() == [0]
