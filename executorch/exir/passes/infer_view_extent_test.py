from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from executorch.exir import to_edge
from executorch.runtime import Runtime

SIZES = {"x": {0: Dim("rows", max=4), 1: Dim("length", max=9)}}


class Heads(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b, t, c = x.shape
        return x.view(b * t, c), x.view(b, t, 2, c // 2)


def views(dynamic: Any) -> list[list[Any]]:
    program = export(Heads(), (torch.randn(3, 5, 4),), dynamic_shapes=dynamic)
    edge = to_edge(program)
    nodes = edge.exported_program().graph.nodes
    found = [n.args[1] for n in nodes if "view_copy" in str(n.target)]
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    for rows, length in [(3, 5)] if dynamic is None else [(1, 1), (4, 9), (2, 3)]:
        x = torch.randn(rows, length, 4)
        for got, want in zip(method.execute([x]), Heads()(x), strict=True):
            assert torch.equal(got, want)
    return found


def test_a_single_unknown_extent_is_inferred() -> None:
    assert views(SIZES)[0] == [-1, 4]


def test_two_unknown_extents_are_left() -> None:
    assert -1 not in views(SIZES)[1]


@pytest.mark.parametrize("place", [0, 1])
def test_known_extents_are_left(place: int) -> None:
    assert -1 not in views(None)[place]
