"""Models that write attention, masks and routing in further ways, against eager mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executorch.exir import NotCausalError, make_incremental, to_edge
from executorch.runtime import Runtime
from tests.incremental.incremental_test import check, check_refusal, exported, first, made, texts
from tests.incremental.letters import CAUSAL_LETTERS, NOT_CAUSAL_LETTERS
from tests.incremental.lookups import CAUSAL_LOOKUPS, NOT_CAUSAL_LOOKUPS, NOT_CAUSAL_WRITES
from tests.incremental.masks import CAUSAL_MASKS, NOT_CAUSAL_MASKS
from tests.incremental.mixing import CAUSAL_MIXING, NOT_CAUSAL_MIXING
from tests.incremental.models import Model, _causal
from tests.incremental.pairs import CAUSAL_PAIRS, NOT_CAUSAL_PAIRS
from tests.incremental.spellings import CAUSAL_SPELLINGS, NOT_CAUSAL_SPELLINGS
from tests.incremental.weights import CAUSAL_WEIGHTS, NOT_CAUSAL_WEIGHTS


def run_of(model: nn.Module) -> Any:
    buffer = to_edge(make_incremental(exported(model))).to_executorch().buffer
    method = Runtime.get().load_program(buffer).load_method("forward")
    return lambda ids: method.execute([ids])


_CAUSAL = [
    *CAUSAL_SPELLINGS, *CAUSAL_WEIGHTS, *CAUSAL_LOOKUPS, *CAUSAL_LETTERS, *CAUSAL_MASKS,
    *CAUSAL_PAIRS, *CAUSAL_MIXING,
]  # fmt: skip


@pytest.mark.parametrize("kind", _CAUSAL, ids=lambda k: k.__name__)
def test_results_are_those_of_the_model(kind: type[nn.Module]) -> None:
    model = made(kind)
    check(model, run_of(model))


_NOT_CAUSAL = {
    **NOT_CAUSAL_SPELLINGS,
    **NOT_CAUSAL_WEIGHTS,
    **NOT_CAUSAL_LOOKUPS,
    **NOT_CAUSAL_LETTERS,
    **NOT_CAUSAL_MASKS,
    **NOT_CAUSAL_PAIRS,
    **NOT_CAUSAL_MIXING,
}


@pytest.mark.parametrize("kind", _NOT_CAUSAL, ids=lambda k: k.__name__)
def test_what_looks_ahead_is_refused_with_its_line(kind: type[nn.Module]) -> None:
    files = (
        "spellings.py",
        "models.py",
        "weights.py",
        "lookups.py",
        "letters.py",
        "masks.py",
        "pairs.py",
        "mixing.py",
    )
    check_refusal(kind, _NOT_CAUSAL[kind], *files)


@pytest.mark.parametrize("kind", NOT_CAUSAL_WRITES, ids=lambda k: k.__name__)
def test_writes_among_tokens_are_refused_with_their_line(kind: type[nn.Module]) -> None:
    with pytest.raises(NotCausalError, match=NOT_CAUSAL_WRITES[kind]) as error:
        make_incremental(exported(made(kind)))
    assert "models.py:" in str(error.value)


def test_activations_that_torchao_quantizes_by_token_are_rows() -> None:
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    model = made(Model)
    quantize_(model, Int8DynamicActivationInt8WeightConfig())
    run = run_of(model)
    for ids in texts(30):
        expected, found = first(model(torch.tensor([ids]))), first(run(torch.tensor([ids])))
        # The largest number of a token lies between two integers: another rounding of an operand
        # takes the other one, in each of five products.
        step = 5 / 127 * expected.abs().max().item()
        torch.testing.assert_close(found, expected, rtol=0, atol=step)


class LowestFill(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3)
        scores = scores.masked_fill(~_causal(n), torch.finfo(q.dtype).min)
        return F.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v


class LowestMask(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.full((n, n), torch.finfo(q.dtype).min, dtype=q.dtype).triu(1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", [LowestFill, LowestMask], ids=lambda k: k.__name__)
def test_the_lowest_number_of_a_type_is_a_mask(kind: type[nn.Module], dtype: torch.dtype) -> None:
    model = made(kind).to(dtype)
    run = run_of(model)
    exact = made(kind).to(torch.float64)
    bound = 8 * torch.finfo(dtype).eps  # two layers, results of order one, rounded at each step
    for ids in texts(30):
        given = torch.tensor([ids])
        torch.testing.assert_close(
            first(run(given)).double(), first(exact(given)), rtol=bound, atol=bound
        )
