from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import to_edge
from executorch.runtime import Runtime


class Gate(nn.Module):
    """The gate of squeeze and excitation, as it is often written."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        gate = x.mean((2, 3), keepdim=True).sigmoid()
        return x * gate.expand_as(x), gate.expand_as(x) - x


class Rows(nn.Module):
    """Without the expansion the sum would have other sizes."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, :1, :1].expand(x.shape) + x[:, :, :1, :1]


SIZES = ({0: Dim("images", max=4), 2: Dim("height", max=9)},)


@pytest.mark.parametrize(("model", "left"), [(Gate(), 0), (Rows(), 1)], ids=["gate", "rows"])
@pytest.mark.parametrize("dynamic", [None, SIZES], ids=["static", "dynamic"])
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last], ids=str)
def test_operators_broadcast_what_was_expanded_for_them(model, left, dynamic, order) -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=order)
    edge = to_edge(export(model, (x,), dynamic_shapes=dynamic))
    names = [str(n.target) for n in edge.exported_program().graph.nodes]
    contiguous = order is torch.contiguous_format
    # A contiguous first operand makes the second result contiguous, beside images that are not.
    assert sum("expand_copy" in name for name in names) == (left if contiguous else 1)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    expected = model(x)
    for got, want in zip(method.execute([x]), expected if left == 0 else [expected], strict=True):
        torch.testing.assert_close(got, want, check_stride=False)
