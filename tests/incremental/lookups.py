"""Tables that tokens pick from, memories that they attend to, and what is made of all tokens so
far."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import (
    BLOCK,
    HEADS,
    MOST_TOKENS,
    VOCABULARY,
    WIDTH,
    AllPositions,
    Model,
    _causal,
)


class IndexedWeights(AllPositions):
    """Not by nn.Embedding: by indices, by a product with ones, and by parts of a token's number."""

    def hidden(self, ids: Tensor) -> Tensor:
        weight = self.embedding.weight
        chosen = weight.T[:, ids // 2].permute(1, 2, 0) + weight[ids]
        chosen = chosen + weight.index_select(0, ids.view(-1)).view(chosen.shape)
        return super().hidden(ids) + chosen + F.one_hot(ids, VOCABULARY).float() @ weight


class Memory(Model):
    """Keys and values that are no tokens'."""

    is_causal = False

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.randn(2, 1, HEADS, 7, WIDTH // HEADS))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        keys, values = self.memory.unbind(0)
        mask = torch.arange(7)[None] > 2 if not self.is_causal else None
        found = F.scaled_dot_product_attention(q, keys, values, mask, is_causal=self.is_causal)
        return super().attend(q, k, v, n) + found


class MemoryByPosition(Memory):
    is_causal = True


class ProductsByPosition(AllPositions):
    """Of each token by itself, with the same query for all, and with its position's matrix."""

    def hidden(self, ids: Tensor) -> Tensor:
        x, n = super().hidden(ids), ids.shape[1]
        heads = x.view(1, n, HEADS, WIDTH // HEADS)
        query = self.position.weight[0, : WIDTH // HEADS].expand(1, n, 1, -1)
        weights = F.softmax(query @ heads.transpose(2, 3), -1)
        rotation = F.normalize(self.position(torch.arange(n)).view(n, HEADS, WIDTH // HEADS), dim=1)
        y = weights @ heads @ rotation.mT @ rotation
        return x + y.view(1, n, WIDTH // HEADS).repeat(1, 1, HEADS)


class ComplexRotary(Model):
    """Pairs of numbers rotated as complex ones."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        angle = torch.outer(torch.arange(n).float(), 1 / 100 ** (torch.arange(0, 8, 2) / 8))
        rotation = torch.polar(torch.ones_like(angle), angle)

        def rotated(x: Tensor) -> Tensor:
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * rotation).flatten(3).type_as(x)

        return super().attend(rotated(q), rotated(k), v, n)


class RunningMean(AllPositions):
    """Of all tokens so far, over channels normalised as in training."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_norm = nn.BatchNorm1d(WIDTH)

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        mean = x.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[:, None]
        known = self.position((ids > 5).cumsum(1).clamp(max=9))
        normed = self.batch_norm((mean + known).transpose(1, 2)).transpose(1, 2)
        return normed + F.logsigmoid(x)


class TokenBefore(AllPositions):
    """As RWKV has it."""

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        second = F.pad(x, (0, 0, 2, 0))[:, : ids.shape[1]]
        return x + 0.5 * F.pad(x, (0, 0, 1, -1)) + second


class ProductWithPositionsOfAll(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        return x + x @ self.positions(ids.shape[1]).T @ self.positions(ids.shape[1])


class TokenBehind(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        return x + F.pad(x, (0, 0, -1, 1))


class TokensPaddedAndCutBefore(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        return x + F.pad(x, (0, 0, 2, 0))[:, 2:]


class SumFromLast(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        return super().hidden(ids).flip(1).cumsum(1)


class PickedByTwo(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        return super().hidden(ids) + self.embedding.weight.view(5, 10, WIDTH)[ids // 10, ids % 10]


class NumbersPut(AllPositions):
    """Where tokens say so: in ids, in all of a token's numbers, in some of them, in one column."""

    def hidden(self, ids: Tensor) -> Tensor:
        known = ids.clone()
        known[ids > 40] = 3
        x = super().hidden(known)
        x[ids % 5 == 0] = torch.tensor([0.25])
        x[x < -2] = -2.0
        x[:, :, 3][ids == 7] = 0.5
        x[..., -1] = x[..., 0]
        return x


class FirstPut(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids).clone()
        x[:, 0] = x[:, -1]
        return x


class LastPut(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids).clone()
        x[:, -1] = self.embedding.weight[0]
        return x


class RowsPut(AllPositions):
    """In the places of which tokens lie is which row: how many there are, all tokens say."""

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        x[ids == 3] = self.embedding.weight[0]
        return x


class ScoresPut(Model):
    def hidden(self, ids: Tensor) -> Tensor:
        self.is_padding = ids == 3
        return super().hidden(ids)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e9)
        scores[self.is_padding[:, None, None].expand(scores.shape)] = -1e9
        return F.softmax(scores, -1) @ v


class Gathered(AllPositions):
    """Of a constant, by numbers that count as tokens are read (RoBERTa)."""

    def hidden(self, ids: Tensor) -> Tensor:
        places = (ids != 3).cumsum(1)
        kinds = (torch.arange(BLOCK) % 3)[None].gather(1, places)
        return super().hidden(ids) + self.position(places) + self.embedding(kinds)


class GatheredByPlace(AllPositions):
    """Where a token stands says in which column it looks."""

    def hidden(self, ids: Tensor) -> Tensor:
        kinds = self.position.weight.T[:10].gather(0, ids % 10)
        return super().hidden(ids) + kinds[..., None]


class AllByNumber(AllPositions):
    """All tokens, by their numbers: as they lie, and with the batch behind."""

    def hidden(self, ids: Tensor) -> Tensor:
        x, numbers = super().hidden(ids), torch.arange(ids.shape[1])
        known = ids[torch.arange(1)[:, None, None, None], numbers[None, None, None] + 0]
        return self.embedding(known[:, 0, 0]) + x[:, numbers] + x.transpose(0, 1)[numbers][:, 0]


class AllInReverse(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        return super().hidden(ids)[:, n - 1 - torch.arange(n)]


class NextByNumber(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        return super().hidden(ids)[:, (torch.arange(n) + 1).clamp(max=n - 1)]


class AllByNumberOfLongest(AllPositions):
    """As they lie in the longest text alone."""

    def hidden(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        return super().hidden(ids)[:, torch.arange(n) * (n // MOST_TOKENS)]


CAUSAL_LOOKUPS: list[type[nn.Module]] = [
    AllByNumber, ComplexRotary, Gathered, IndexedWeights, Memory, NumbersPut, ProductsByPosition,
    RunningMean, ScoresPut, TokenBefore,
]  # fmt: skip
NOT_CAUSAL_LOOKUPS: dict[Any, str] = {
    MemoryByPosition: "keys that are no tokens', with a mask of tokens",
    ProductWithPositionsOfAll: "a product that sums over tokens, but is no attention",
    TokenBehind: "tokens are padded elsewhere than before the first",
    TokensPaddedAndCutBefore: "tokens padded before the first are cut elsewhere than behind",
    SumFromLast: "does not keep tokens apart, or in their order",
    GatheredByPlace: "each token's entries are picked from another place",
    AllInReverse: "it picks tokens other than the last",
    NextByNumber: "it picks tokens other than the last",
    AllByNumberOfLongest: "its value changes with the number of tokens",
    PickedByTwo: "its entries are picked by more than one tensor",
}
# Writes become values, whose nodes have other names.
NOT_CAUSAL_WRITES: dict[Any, str] = {
    FirstPut: "what the last token gave would reach earlier ones",
    LastPut: "it picks among tokens",
    RowsPut: "it is not known how this operator moves values between tokens",
}
