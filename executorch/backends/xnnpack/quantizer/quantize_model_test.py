from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack.quantizer.quantize_model import quantize_model

INPUTS = (torch.randn(2, 32),)


def layers() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 4)).eval()


@pytest.mark.parametrize("how", ["int8", "int4"])
def test_the_given_model_stays_and_the_result_is_near(how: Any) -> None:
    model = layers()
    before = copy.deepcopy(model.state_dict())
    found = quantize_model(model, INPUTS, how)(*INPUTS)
    expected = model(*INPUTS)
    assert 0 < (found - expected).abs().max() < 0.2 * expected.abs().max()
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_layers_that_no_group_divides_keep_their_floats() -> None:
    quantized = quantize_model(layers(), INPUTS, "int4")
    first, last = quantized.get_submodule("0"), quantized.get_submodule("2")
    assert type(first.weight) is not nn.Parameter and type(last.weight) is nn.Parameter


def test_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="found 'int3'"):
        quantize_model(layers(), INPUTS, "int3")  # type: ignore[arg-type]
