"""A kernel of an application's own is wrong in its tail: the parity gate says which, and where."""

from __future__ import annotations

import ctypes
import inspect

import pytest
import torch
from torch import Tensor, nn

from tests.built import BUILD, needs

LIBRARY = BUILD / "tests" / "parity" / "libwrong_kernel.so"

pytestmark = needs(LIBRARY)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(torch.ops.parity_test.twice(self.linear(x)))


class Net(nn.Module):
    """float [t, 8] to [t]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x.reshape(-1, 8))
        return x.sum(1)


@pytest.fixture(scope="module", autouse=True)
def operator() -> None:
    ctypes.CDLL(str(LIBRARY))
    library = torch.library.Library("parity_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.define("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    library.impl("twice", lambda x: 2 * x, "CompositeExplicitAutograd")

    def out_variant(x: Tensor, out: Tensor) -> Tensor:
        return out.resize_(x.shape).copy_(2 * x)

    library.impl("twice.out", out_variant, "CompositeExplicitAutograd")
    operator.keep = library  # type: ignore[attr-defined]


def test_gate_names_operator_module_and_line() -> None:
    from executorch.devtools.parity import check_parity
    from executorch.exir import to_edge

    class Tail(Net):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ops.parity_test.twice(super().forward(x))

    model = Tail().eval()
    inputs = (torch.randn(8, 8),)
    shapes = ({0: torch.export.Dim("t", max=16)},)
    program = to_edge(torch.export.export(model, inputs, dynamic_shapes=shapes)).to_executorch()
    report = check_parity(program, model, inputs, dynamic_shapes=shapes)
    # In whole vectors the kernel is right: the given size and 16 pass, and the boundaries tell.
    failed = [c.name.rpartition(" = ")[2] for c in report.cases if c.error]
    assert failed == ["1", "2", "7", "15"]
    suspect = report.suspects[0]
    assert suspect.operator == "parity_test::twice.out"
    lines, first = inspect.getsourcelines(Tail.forward)
    assert f"wrong_kernel_test.py:{first + 1}" in suspect.place
    assert suspect.difference is not None
    assert suspect.difference.found - suspect.difference.expected == pytest.approx(1e-3, rel=1e-2)
    assert len(report.suspects) == 1
