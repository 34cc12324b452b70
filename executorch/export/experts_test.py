"""Mixtures of experts, each layout of their weights, against the modules of `transformers`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts
from transformers.models.mixtral.modeling_mixtral import MixtralExperts
from transformers.models.nemotron_h.modeling_nemotron_h import NemotronHExperts

from executorch.export.experts import EveryExpert, replace_experts

WIDTH, EXPERTS, TOKENS = 8, 5, 7
_SIZES = {"hidden_size": WIDTH, "intermediate_size": 6, "num_hidden_layers": 1}
# Gated; transposed, interleaved, with biases; without a gate.
LAYOUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "mixtral": (MixtralExperts, {"num_local_experts": EXPERTS}),
    "gpt_oss": (GptOssExperts, {"num_local_experts": EXPERTS}),
    "nemotron_h": (NemotronHExperts, {"n_routed_experts": EXPERTS, "moe_intermediate_size": 6}),
}


def experts_of(layout: str) -> Any:
    kind, options = LAYOUTS[layout]
    sizes = {k: v for k, v in _SIZES.items() if layout != "nemotron_h" or k == "hidden_size"}
    config = transformers.AutoConfig.for_model(layout, **sizes, **options)
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    experts = kind(config)
    for weight in experts.parameters():
        nn.init.normal_(weight)
    return experts.eval()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_expert_gives_what_the_picked_ones_give(layout: str) -> None:
    module = experts_of(layout)
    model = nn.Sequential(copy.deepcopy(module))
    replace_experts(model)
    assert isinstance(model[0], EveryExpert)
    assert {p.dim() for p in model.parameters()} <= {1, 2}
    torch.manual_seed(1)
    tokens, weights = torch.randn(TOKENS, WIDTH), torch.rand(TOKENS, 2)
    picked = torch.randint(0, EXPERTS - 1, (TOKENS, 2))  # the last never, some of them twice
    with torch.no_grad():
        expected, found = module(tokens, picked, weights), model[0](tokens, picked, weights)
    # Sums of eight and six products of numbers of order one.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


def test_what_is_no_stack_of_weights_stays() -> None:
    class Own(nn.Module):
        has_gate, has_bias, is_transposed, config = True, False, False, None
        gate_up_proj = nn.Linear(2, 2)

    model = nn.Sequential(Own(), nn.Linear(2, 2))
    replace_experts(model)
    assert isinstance(model[0], Own)
