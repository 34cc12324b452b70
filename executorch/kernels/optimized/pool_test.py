"""Poolings compute what is read of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import to_edge
from executorch.extension.pybindings import _C


class Pool(nn.Module):
    def __init__(self, with_indices: bool) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(3, 2, 1, return_indices=with_indices)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.pool(torch.relu(x))
        return (y[0] + 1, y[1]) if isinstance(y, tuple) else (y + 1,)


@pytest.mark.parametrize("with_indices", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_positions_of_maxima_are_left_out_where_nobody_reads_them(
    with_indices: bool, channels_last: bool
) -> None:
    torch.manual_seed(0)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    module = Pool(with_indices).eval()
    x = torch.randn(2, 5, 40, 40).to(memory_format=layout)
    exported = export(module, (x,), dynamic_shapes=({0: Dim("batch", max=4)},))
    buffer = to_edge(exported).to_executorch().buffer
    program = _C._load_program_from_buffer(buffer)
    method = program.load_method("forward")
    assert (" max_pool2d <- " in _C._last_fusion()) == (not with_indices)
    for batch in (2, 3):
        x = torch.randn(batch, 5, 40, 40).to(memory_format=layout)
        x[0, 1, 7, 7] = float("nan")
        for found, expected in zip(method.call((x,)), module(x), strict=True):
            assert torch.equal(found.nan_to_num(-1), expected.nan_to_num(-1))
