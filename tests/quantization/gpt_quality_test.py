"""What quantization costs the shipped GPT, as the runtime computes it, over held-out text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models.zoo import ROOT
from tests.modules import load

EXAMPLE = ROOT / "examples" / "nanogpt"
CORPUS = ROOT.parent / "shared" / "data" / "tinyshakespeare.txt"
LENGTHS = (1, 5, 32, 100, 128, 128, 200, 256) * 2

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not here")


class Logits(nn.Module):
    """int64 [1, t] to the logits after each token, [1, t, vocabulary]."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens, tokens)[0]


@pytest.fixture(scope="module")
def model() -> nn.Module:
    return Logits(load(EXAMPLE / "model.py").GPT.from_file(EXAMPLE / "nanogpt.safetensors")).eval()


@pytest.fixture(scope="module")
def sequences() -> list[Tensor]:
    """Pieces of the last tenth, which training has not seen; each [1, length + 1]."""
    text = CORPUS.read_text(encoding="utf-8")
    vocabulary = json.loads((EXAMPLE / "vocab.json").read_text(encoding="utf-8"))
    ids = torch.tensor(
        load(EXAMPLE / "bpe.py").Tokenizer(vocabulary).encode(text[len(text) * 9 // 10 :])
    )
    step = len(ids) // len(LENGTHS)
    return [ids[i * step :][: n + 1][None] for i, n in enumerate(LENGTHS)]


def loss(function: Callable[[Tensor], Tensor], sequences: list[Tensor]) -> float:
    """Nats per token."""
    total = sum(
        float(F.cross_entropy(function(s[:, :-1])[0], s[0, 1:], reduction="sum")) for s in sequences
    )
    return total / sum(LENGTHS)


def recipe(quantize: str | None, backend: str) -> Any:
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType
    from executorch.export import ExportRecipe

    kinds = {
        None: XNNPackRecipeType.FP32,
        "int8": XNNPackRecipeType.PT2E_INT8_DYNAMIC_PER_CHANNEL,
        "int4": XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR,  # by group
    }
    made = ExportRecipe.get_recipe(kinds[quantize])
    return made if backend == "xnnpack" else replace(made, lowering_recipe=None)


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize(
    ("quantize", "bound"), [(None, 1e-4), ("int8", 0.01), ("int4", 0.1)], ids=str
)
@torch.no_grad()
def test_loss_stays(
    quantize: Any, bound: float, backend: str, model: nn.Module, sequences: list[Tensor]
) -> None:
    from executorch.export import export
    from executorch.runtime import Runtime

    inputs = (sequences[-1][:, :-1],)
    shapes = ({1: torch.export.Dim("tokens", max=256)},)
    session = export(model, inputs, recipe(quantize, backend), dynamic_shapes=shapes)
    method = Runtime.get().load_program(session.get_pte_buffer()).load_method("forward")
    assert method is not None
    found = loss(lambda tokens: method.execute([tokens])[0], sequences)
    assert abs(found - loss(model, sequences)) < bound
