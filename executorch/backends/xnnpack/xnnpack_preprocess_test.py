"""What is asked of a program before it is lowered."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from executorch.backends.xnnpack.xnnpack_preprocess import (
    ExternalMeta,
    assert_default_dim_order,
    generate_node_to_external_map,
)
from executorch.exir import to_edge


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x + self.weight, y, y * x


def test_values_outside_are_numbered_inputs_first() -> None:
    inputs = (torch.ones(2), torch.ones(2))
    program = to_edge(torch.export.export(Net(), inputs)).exported_program()
    found = generate_node_to_external_map(program, program.graph_module)
    by_name = {node.name: meta for node, meta in found.items()}
    assert by_name == {
        "x": ExternalMeta(0, 1),
        "y": ExternalMeta(1, 1),
        "aten_add_tensor": ExternalMeta(2, 2),
        "aten_mul_tensor": ExternalMeta(4, 2),
    }


def test_inputs_of_another_dim_order_are_refused_by_name() -> None:
    plain = torch.ones(1, 2, 3, 3)
    for x in (plain, plain.to(memory_format=torch.channels_last)):
        module = torch.export.export(nn.ReLU(), (x,)).graph_module
        if x is plain:
            assert_default_dim_order(module)
        else:
            with pytest.raises(RuntimeError, match=r"input input .*\(0, 2, 3, 1\)"):
                assert_default_dim_order(module)
