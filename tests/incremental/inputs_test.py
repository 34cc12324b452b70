"""Models that are told more of each token than its id: where padding is, positions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import NotCausalError, make_incremental, to_edge_transform_and_lower
from executorch.runtime import Runtime
from tests.incremental.incremental_test import TOLERANCE, made, texts
from tests.incremental.models import MOST_TOKENS, VOCABULARY, AllPositions, _causal


class Padded(AllPositions):
    """As `transformers` makes masks for the fused operator."""

    def keys(self, mask: Tensor) -> Tensor:
        numbers = torch.arange(mask.shape[1])[None, None, None]
        return mask.bool()[torch.arange(mask.shape[0])[:, None, None, None], numbers]

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        self.said = mask
        self.visible = self.keys(mask) & _causal(ids.shape[1])
        return super().forward(ids)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.visible)


class Placed(Padded):
    """With the position of each token."""

    def forward(  # type: ignore[override]
        self, ids: Tensor, mask: Tensor, places: Tensor
    ) -> Tensor:
        self.places = places
        return super().forward(ids, mask)

    def positions(self, n: int) -> Tensor:
        return self.position(self.places)


class InVectors(Placed):
    """Ids and positions without a batch."""

    def forward(  # type: ignore[override]
        self, ids: Tensor, mask: Tensor, places: Tensor
    ) -> Tensor:
        return super().forward(ids[None], mask, places[None])

    @staticmethod
    def flat(inputs: list[Tensor]) -> list[Tensor]:
        ids, mask, places = inputs
        return [ids[0], mask, places[0]]


class NotYetPadded(Padded):
    """What is said of the next token hides this one."""

    def keys(self, mask: Tensor) -> Tensor:
        numbers = torch.arange(mask.shape[1])[None, None, None]
        return mask.bool()[torch.arange(1), (numbers + 1).clamp(max=mask.shape[1] - 1)]


class PaddedByNone(Padded):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        visible = self.visible | ~_causal(n)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)


def program_of(model: nn.Module, dims: list[Any] | None = None) -> ExportedProgram:
    model.eval()
    ids = torch.randint(0, VOCABULARY, (1, 9), generator=torch.Generator().manual_seed(0))
    mask, places = torch.ones_like(ids), torch.arange(9)[None]
    inputs = [ids, mask, places] if isinstance(model, Placed) else [ids, mask.bool()]
    inputs = model.flat(inputs) if isinstance(model, InVectors) else inputs
    dims = dims or [Dim("tokens", max=MOST_TOKENS)] * len(inputs)
    shapes = tuple({x.dim() - 1: d} for x, d in zip(inputs, dims, strict=True))
    return export(model, tuple(inputs), dynamic_shapes=shapes)


def told(steps: int, with_places: bool) -> Iterator[tuple[int, list[Tensor]]]:
    """(padding before the text, inputs): the text changes, or what is said of it, or both."""
    source = random.Random(2)
    padding = 0
    for ids in texts(steps):
        if source.random() < 0.4:
            padding = source.randrange(4)
        padding = min(padding, len(ids) - 1)
        mask = torch.tensor([[int(i >= padding) for i in range(len(ids))]])
        places = (mask.cumsum(1) - 1).clamp(min=0)
        more = [mask, places] if with_places else [mask.bool()]
        yield padding, [torch.tensor([ids]), *more]


@pytest.mark.parametrize("delegate", [False, True], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("kind", [Padded, Placed, InVectors])
def test_what_is_said_of_tokens_is_compared_as_they_are(kind: Any, delegate: bool) -> None:
    model = made(kind)
    incremental = make_incremental(program_of(model))
    partitioner = [XnnpackPartitioner()] if delegate else None
    edge = to_edge_transform_and_lower(incremental, partitioner=partitioner)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    steps = list(told(60, issubclass(kind, Placed)))
    assert len({padding for padding, _ in steps}) == 4
    for padding, inputs in steps:
        inputs = kind.flat(inputs) if kind is InVectors else inputs
        with torch.no_grad():
            expected = model(*inputs)[:, padding:]
        found = method.execute(inputs)[0][:, padding:]
        torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NotYetPadded, "it picks tokens other than the last"),
        (PaddedByNone, "scaled_dot_product_attention"),
    ],
)
def test_padding_that_lets_a_token_look_ahead_is_refused(kind: Any, message: str) -> None:
    with pytest.raises(NotCausalError, match=message):
        make_incremental(program_of(made(kind)))


def test_lengths_of_inputs_that_are_not_the_same_are_refused() -> None:
    class Two(AllPositions):
        def forward(self, ids: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(ids) + mask.sum()

    dims = [Dim("tokens", max=MOST_TOKENS), Dim("others", max=MOST_TOKENS)]
    with pytest.raises(ValueError, match="dim 1 of mask is .*, not .* as of the first input"):
        make_incremental(program_of(made(Two), dims))
