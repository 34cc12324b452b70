"""Bounds of symbolic extents: as tight as the memory that is planned for them should be."""

from __future__ import annotations

import math

import pytest
import torch
from torch.export import Dim

from executorch.exir import to_edge
from executorch.exir.error import ExportError
from executorch.exir.sym_util import upper_bound
from executorch.runtime import Runtime


class SplitRows(torch.nn.Module):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0] // self.k, self.k, 3).permute(1, 0, 2).relu()


@pytest.mark.parametrize(("k", "least", "bound"), [(2, 4, 2), (7, 14, 10), (5, 5, 9), (3, 1, 5)])
def test_a_dimension_split_off_by_a_view_is_bounded_by_the_divisor(k, least, bound):
    """Torch writes it as n // (n // k), whose parts alone would bound it by n."""
    rows = Dim.AUTO(min=least, max=512)
    program = torch.export.export(
        SplitRows(k), (torch.ones(8 * k, 3),), dynamic_shapes=({0: rows},)
    )
    (view,) = (n for n in program.graph.nodes if n.target is torch.ops.aten.view.default)
    n = view.args[0].meta["val"].shape[0]
    assert upper_bound(n // (n // k)) == bound
    assert upper_bound(n // k) == 512 // k
    blocks = torch.sym_int(math.ceil(n / k))
    assert upper_bound(n // blocks) == k
    assert upper_bound((n // blocks) * n) == 512 * k


def test_a_tensor_that_no_file_can_hold_is_named_by_the_export():
    class Pairs(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, None, None] * x[None, :, None] * x

    sizes = ({0: Dim.AUTO(max=50_000)},)
    edge = to_edge(torch.export.export(Pairs(), (torch.ones(3),), dynamic_shapes=sizes))
    with pytest.raises(ExportError, match=r"(?s)50000, 50000, 50000.*sym_util_test.py.*smaller"):
        edge.to_executorch()


def test_pixel_unshuffle_of_any_size_plans_memory_for_its_image():
    sizes = {0: Dim.AUTO(max=4), 2: Dim.AUTO(max=512), 3: Dim.AUTO(max=512)}
    model = torch.nn.PixelUnshuffle(2)
    program = torch.export.export(model, (torch.ones(2, 3, 32, 32),), dynamic_shapes=(sizes,))
    method = (
        Runtime.get().load_program(to_edge(program).to_executorch().buffer).load_method("forward")
    )
    x = torch.randn(3, 3, 48, 64)
    assert torch.equal(method.execute([x])[0], model(x))
