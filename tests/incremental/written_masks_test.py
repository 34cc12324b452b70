"""Masks that tokens make, before a softmax that is written out: a query may see no key at all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import NotCausalError, make_incremental, to_edge_transform_and_lower
from executorch.runtime import Method, Runtime
from tests.incremental.incremental_test import TOLERANCE, exported, made, texts
from tests.incremental.inputs_test import Padded, Placed, program_of
from tests.incremental.masks import PaddingInfinite, PaddingNegated
from tests.incremental.models import MOST_TOKENS, _causal

LOWEST = torch.finfo(torch.float32).min


class Written(Padded):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(2, 3) * 0.3

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.softmax(self.masked(self.scores(q, k), n), -1) @ v

    def masked(self, scores: Tensor, n: int) -> Tensor:
        raise NotImplementedError


class Added(Written):
    """As `transformers` makes masks for attention that is written out."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + torch.where(self.visible, 0.0, LOWEST)


class AddedByHead(Written):
    """Half of the heads see padding, too."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        sees_all = torch.tensor([True, False, True, False])[:, None, None]
        return scores + torch.where((sees_all | self.visible) & _causal(n), 0.0, LOWEST)


class Filled(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores.masked_fill(~self.visible, -1e9)


class FilledWhereZero(Written):
    """A product of integers is compared with zero."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores.masked_fill(self.visible.long() * _causal(n).long() == 0, -1e9)


class FilledWhereLater(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores.masked_fill(~_causal(n) | ~self.visible, -1e9)


class Chosen(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return torch.where(self.visible, scores, -1e4)


class Twice(Written):
    """Later tokens first, then padding: together they may hide all."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = scores.masked_fill(~_causal(n), -1e9)
        return scores.masked_fill(~self.keys(self.said), -1e9)


class AddedTwice(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = torch.where(_causal(n), scores, -1e9)
        return scores + torch.zeros(1, 1, n, n).masked_fill(~self.keys(self.said), LOWEST)


class Numbers(Written):
    """As models have long made masks: 1 for a token, 0 for padding."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return self.low() + scores.masked_fill(~_causal(n), -1e9)

    def low(self) -> Tensor:
        return (1.0 - self.said[:, None, None, :].float()) * LOWEST


class NumbersFirst(Numbers):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return torch.where(_causal(n), scores + self.low(), LOWEST)


class NumbersOfPairs(Written):
    """The same of queries and keys."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + (1.0 - self.visible.float()) * LOWEST


class NumbersOfTriangle(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        visible = torch.tril(torch.ones(n, n)) * self.said[:, None, None, :].float()
        return scores * 0.5 + (visible - 1.0) * 1e9


class NumbersOfInts(Written):
    """Padding for each query, of which a triangle is left."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        visible = torch.tril(self.said.long()[:, None, :].expand(1, n, n))
        return scores + (1 - visible)[:, None] * -1e9


class NumbersExpanded(Numbers):
    def low(self) -> Tensor:
        low = (1.0 - self.said[:, None, None, :].float()) * LOWEST
        return low.expand(1, 1, self.said.shape[1], -1)


class NumbersJoined(Numbers):
    """With another mask of tokens, and then with later ones, before scores are there."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        other = torch.zeros(1, 1, n, n).masked_fill(~self.keys(self.said), -1e9)
        low = (1.0 - self.said[:, None, None, :].float().expand(1, 1, n, n)) * -1e9
        return scores + (low + other).masked_fill(~_causal(n), -2e9)


class Scaled(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + torch.where(self.visible, 0.0, -1.0) * 1e9


class Subtracted(Written):
    """As the first GPT weighed scores by a mask."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        visible = torch.tril(torch.ones(n, n)) * self.said[:, None, None, :].float()
        return scores * visible - 1e9 * (1.0 - visible)


class LargestOfTwo(Written):
    """What hides is one in a mask of padding or of later tokens."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        padding = (self.said.long() == 0)[:, None, None, :].float()
        later = 1.0 - torch.tril(torch.ones(n, n))
        return scores + torch.maximum(padding, later) * -1e9


class SumOfTwo(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        hidden = 1 - self.said[:, None, None, :].int() + torch.ones(n, n).triu(1).int()
        return scores - hidden.float() * 1e9


class FilledWhereNotSeen(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        visible = torch.ones(n, n).tril() - 1.0 + self.said[:, None, None, :].float()
        return scores.masked_fill(visible <= 0, LOWEST)


class OfTokensAlone(Written):
    """A sum over what is no padding, whatever queries and keys are."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return (1.0 - self.visible.float()) * -1e9

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores


class FusedNumbers(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = (1.0 - self.visible.float()) * LOWEST
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Logarithm(Written):
    """Padding, infinitely low, hides less than later tokens do."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = scores.masked_fill(~_causal(n), -1e9)
        return scores + self.said[:, None, None, :].float().log()


class QueriesHidden(Written):
    """Padding sees all as badly as others see later tokens."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = scores + (1.0 - self.said[:, None, :, None].float()) * -1e9
        return scores.masked_fill(~_causal(n), -1e9)


class Wrapped(Written):
    """Zero less one is 255 of such integers."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        low = (self.visible.to(torch.uint8) - 1).float() * -1e9
        return scores.masked_fill(~_causal(n), -1e9) + low


class Undone(Written):
    """What is seen is far above zero."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + (1.0 - 2.0 * self.visible.float()) * -1e9


class Raised(Written):
    """Padding is so far above the others that it shows what was hidden."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = scores.masked_fill(~_causal(n), -1e9)
        return scores + (1.0 - self.said[:, None, None, :].float()) * 1e9


class Window(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        visible = self.visible & (i[None, :] > i[:, None] - 3)
        return scores + torch.where(visible, 0.0, LOWEST)


class Fused(Written):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.where(self.visible, 0.0, LOWEST)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class WrittenToTheEnd(Filled):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = self.masked(self.scores(q, k), n)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        return weights / weights.sum(-1, keepdim=True) @ v


class CountsAdded(Added):
    """ALiBi of the tokens that are no padding, added by the product."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        places = (self.said.long().cumsum(1) - 1) * self.said
        slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])[:, None, None]
        found = torch.baddbmm(slopes * places, q[0], k[0].transpose(1, 2), beta=1.0, alpha=0.3)
        return found[None]


class LowAdded(Added):
    """A mask that the product adds."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        low = torch.where(self.said[:, None, :], 0.0, LOWEST)
        return torch.baddbmm(low, q[0], k[0].transpose(1, 2))[None]


class WhereScoresAreHigh(Written):
    """Tokens see what is like them."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return torch.where((scores > 0.05) & self.visible, scores, -1e9)


class Infinite(Written):
    """A query that sees nothing is no number, nor is what sees it."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores.masked_fill(~self.visible, -torch.inf)


KINDS = [
    Added, AddedByHead, Filled, FilledWhereZero, FilledWhereLater, Chosen, Twice, AddedTwice,
    Numbers, NumbersFirst, NumbersOfPairs, NumbersOfTriangle, NumbersOfInts, NumbersExpanded,
    NumbersJoined, Scaled, Subtracted, LargestOfTwo, SumOfTwo, FilledWhereNotSeen, OfTokensAlone,
    FusedNumbers, Logarithm, Undone, QueriesHidden, Window, Fused,
    WrittenToTheEnd, CountsAdded, WhereScoresAreHigh, Infinite,
]  # fmt: skip


def method_of(kind: Any, delegate: bool) -> tuple[Any, Method]:
    model = made(kind)
    partitioner = [XnnpackPartitioner()] if delegate else None
    edge = to_edge_transform_and_lower(make_incremental(program_of(model)), partitioner=partitioner)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    return model, method


def told(steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Texts that change, and which of their tokens are padding, first ones among them."""
    source = random.Random(3)
    said = [True] * MOST_TOKENS
    for ids in texts(steps):
        if source.random() < 0.3:
            padding = source.choice([0, 0, 1, 2, len(ids)])
            said = [i >= padding and source.random() < 0.8 for i in range(MOST_TOKENS)]
        yield torch.tensor([ids]), torch.tensor([said[: len(ids)]])


@pytest.mark.parametrize("delegate", [False, True], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_queries_that_see_nothing_are_computed_anew(kind: Any, delegate: bool) -> None:
    model, method = method_of(kind, delegate)
    for ids, said in told(60):
        with torch.no_grad():
            expected = model(ids, said)
        found = method.execute([ids, said])[0]
        torch.testing.assert_close(
            found, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=kind in (Infinite, Logarithm)
        )


class Leaking(Written):
    """Padding, which comes later, is seen."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + torch.where(self.visible | ~self.keys(self.said), 0.0, LOWEST)


class Halved(Numbers):
    """What is added is divided again, so that it may be no mask."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return (scores.masked_fill(~_causal(n), -1e9) + self.low()) / 1000.0


class ShownBySum(Written):
    """A token that is no padding is seen, also if it comes later."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        visible = _causal(n).float() + self.said[:, None, None, :].float()
        return scores + (1.0 - visible.clamp(max=1.0)) * LOWEST


class ShownByDifference(Written):
    """What hides in one mask is taken back where tokens say so."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = scores.masked_fill(~_causal(n), -1e9)
        return scores - torch.where(self.visible, 0.0, LOWEST)


class ShownByEquality(Written):
    """A number between the ends of a range counts, too."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        number = self.said[:, None, None, :].long() + self.said[:, None, :, None].long()
        return scores.masked_fill((number != 1) & ~_causal(n), LOWEST)


class ShownBySign(Written):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + (1.0 - self.visible.float()) * 1e9


class AddedLittle(Written):
    """What the mask adds is not low."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + torch.where(self.visible, 0.0, -50.0)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Leaking, "no mask keeps a token from attending to later ones"),
        (Raised, "may raise later tokens as far as a mask lowers them"),
        (Wrapped, "may raise later tokens as far as a mask lowers them"),
        (LowAdded, "where is a mask that tokens make themselves"),
        (Halved, "is a mask that tokens make themselves, which this may undo"),
        (ShownBySum, "no mask keeps a token from attending to later ones"),
        (ShownByDifference, "no mask keeps a token from attending to later ones"),
        (ShownByEquality, "the mask lets token 0 attend to token 1, which comes later"),
        (ShownBySign, "may raise later tokens as far as a mask lowers them"),
        (AddedLittle, "no mask keeps a token from attending to later ones"),
    ],
)
def test_masks_that_may_show_later_tokens_are_refused(kind: Any, message: str) -> None:
    with pytest.raises(NotCausalError, match=message):
        make_incremental(program_of(made(kind)))


@pytest.mark.parametrize(
    ("said", "kept"),
    [([1, 1, 1, 1, 1], 5), ([1, 0, 0, 1, 1], 5), ([0, 0, 1, 1, 1], 0), ([0, 0, 0, 0, 0], 0)],
)
@pytest.mark.parametrize("kind", [Added, Twice, Numbers], ids=lambda k: k.__name__)
def test_what_is_kept_ends_before_a_query_that_sees_nothing(
    kind: Any, said: list[int], kept: int
) -> None:
    module = make_incremental(program_of(made(kind))).module()
    module(torch.arange(1, 6)[None], torch.tensor([said]).bool())
    (found,) = [b for name, b in module.named_buffers() if "kept" in name]
    assert found.tolist() == [kept]


class ToldInIntegers(Placed, Numbers):
    """One less a number above one shows what is hidden."""

    def low(self) -> Tensor:
        return (1.0 - self.said[:, None, None, :].float()) * -1e9


def test_integers_are_a_mask_until_one_is_another() -> None:
    model = made(ToldInIntegers)
    module = make_incremental(program_of(model)).module()
    (kept,) = [b for name, b in module.named_buffers() if "kept" in name]
    said = torch.tensor([[1, 1, 0, 1, 2, 1, 1, 1]])
    for numbers in (said, said.clamp(max=1), said + 1):
        for n in range(2, 9):
            given = (torch.arange(1, n + 1)[None], numbers[:, :n], torch.arange(n)[None])
            with torch.no_grad():
                expected = model(*given)
            torch.testing.assert_close(module(*given), expected, rtol=TOLERANCE, atol=TOLERANCE)
            is_mask = bool(((numbers[:, :n] == 0) | (numbers[:, :n] == 1)).all())
            assert kept.item() == (n if is_mask else 0)


@pytest.mark.parametrize("kind", [PaddingInfinite, PaddingNegated])
def test_infinities_above_zero_are_refused(kind: Any) -> None:
    with pytest.raises(NotCausalError, match="may raise later tokens as far as a mask lowers them"):
        make_incremental(exported(made(kind)))


def test_layers_with_the_same_mask_look_once() -> None:
    graph = make_incremental(program_of(made(Filled))).graph
    looks = [n for n in graph.nodes if n.target is torch.ops.aten.any.dim]
    assert len(looks) == 1
