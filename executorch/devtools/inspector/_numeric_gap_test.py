from __future__ import annotations

import math
from importlib import import_module

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


def test_comparators_have_modules_of_their_own() -> None:
    package = "executorch.devtools.inspector.numerical_comparator"
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])
    for name, gap in {"L1": 2.0, "MSE": 2.0, "SNR": 10 * math.log10(2.5 / 2)}.items():
        module = import_module(f"{package}.{name.lower()}_numerical_comparator")
        comparator = getattr(module, f"{name}Comparator")()
        base = import_module(f"{package}.numerical_comparator_base").NumericalComparatorBase
        assert isinstance(comparator, base)
        assert math.isclose(comparator.element_compare(a, b), gap, rel_tol=1e-6)
