"""Quantization-aware training through `executorch.export`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.export import ExportRecipe, LoweringRecipe, QuantizationRecipe, export


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.drop(torch.relu(self.norm(self.conv(x))).mean((2, 3))))


def switched(mode: str, seen: list[nn.Module]) -> Callable[[torch.fx.GraphModule], None]:
    def train(module: torch.fx.GraphModule) -> None:
        if mode == "train":
            module.train()
        optimizer = torch.optim.SGD(module.parameters(), 1e-4)
        for _ in range(3):
            module(torch.randn(2, 3, 8, 8)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        if mode == "eval":
            module.eval()
        seen.append(module)

    return train


def exported(recipe: QuantizationRecipe, x: torch.Tensor) -> Any:
    torch.manual_seed(0)
    lowering = LoweringRecipe([XnnpackPartitioner()])
    return export(
        Classifier(), [(x,)], ExportRecipe(quantization_recipe=recipe, lowering_recipe=lowering)
    )


def quantizer() -> XNNPACKQuantizer:
    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    return XNNPACKQuantizer().set_global(config)


@pytest.mark.parametrize("mode", ["as it is given", "train", "eval"])
def test_trained_modules_are_exported_as_in_evaluation(mode: str) -> None:
    seen: list[nn.Module] = []
    torch.manual_seed(1)
    x = torch.randn(2, 3, 8, 8)

    def calibrate() -> list[tuple[torch.Tensor, ...]]:
        raise AssertionError("calibration is for what was not trained")

    session = exported(
        QuantizationRecipe(
            [quantizer()],
            is_qat=True,
            train_fn=switched(mode, seen),
            calibration_inputs_fn=calibrate,
        ),
        x,
    )
    assert session.get_pte_buffer()
    program = session.get_exported_program()
    module = program.module()
    *_, last = (n for n in program.graph.nodes if "dequantize_per_tensor" in str(n.target))
    step = last.args[1]  # a value between two of them may be rounded to either
    expected = module(x)
    assert len(seen) == 1
    assert torch.equal(module(x), expected)  # dropout drops nothing
    others = torch.cat([x[:1], 5 * torch.randn(1, 3, 8, 8)])
    # Norms use the running statistics.
    torch.testing.assert_close(module(others)[0], expected[0], atol=step, rtol=0)
    (found,) = session.run_method(example_inputs=(x,))
    torch.testing.assert_close(found, expected, atol=step, rtol=0)


def test_training_needs_its_function() -> None:
    recipe = QuantizationRecipe([quantizer()], is_qat=True)
    with pytest.raises(ValueError, match="is_qat needs a train_fn"):
        exported(recipe, torch.randn(2, 3, 8, 8))
