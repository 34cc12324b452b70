"""`Conv1D` of `transformers` as linear layers."""

from __future__ import annotations

import pytest
import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

from executorch.export import export
from executorch.export.conv1d import replace_conv1d
from executorch.export.transformers_models import source_of
from executorch.runtime import Module


def test_linear_layers_compute_what_the_layers_did():
    model, x = nn.Sequential(Conv1D(6, 4), nn.Sequential(Conv1D(3, 6))).eval(), torch.randn(2, 4)
    nn.init.normal_(model[0].bias)
    expected = model(x)
    replace_conv1d(model)
    kinds = [type(m) for m in model.modules() if not isinstance(m, nn.Sequential)]
    assert kinds == [nn.Linear, nn.Linear] and not any(m.training for m in model.modules())
    torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize(("quantize", "at_most"), [("int8", 0.35), ("int4", 0.25)])
def test_all_products_of_gpt2_are_quantized(quantize, at_most, tmp_path):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=96, n_positions=16, n_embd=128, n_layer=2, n_head=4, bos_token_id=1
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.tensor([[5, 17, 3]])
    expected = model(tokens).logits.detach()
    floats = sum(p.nbytes for p in model.parameters())
    source = source_of(model)
    session = export(source.model, source.inputs, dynamic_shapes=source.shapes, quantize=quantize)
    session.save_to_pte(str(tmp_path / "gpt2.pte"))
    assert (tmp_path / "gpt2.pte").stat().st_size < at_most * floats
    error = (Module(tmp_path / "gpt2.pte")(tokens) - expected).norm() / expected.norm()
    assert error < {"int8": 0.05, "int4": 0.2}[quantize]


def test_layers_that_stay_in_floats_are_named():
    model, x = nn.Sequential(Conv1D(64, 32), nn.Linear(64, 32)).eval(), torch.randn(2, 32)
    for quantize in ("int8", "int4"):
        with pytest.warns(UserWarning, match=r"not quantized: 0 \(Conv1D\): .*replace_conv1d"):
            export(model, [(x,)], quantize=quantize)
