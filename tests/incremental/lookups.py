"""Tables that tokens pick from, memories that they attend to, and what is made of all tokens so
far."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import HEADS, VOCABULARY, WIDTH, AllPositions, Model


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
        rotation = self.position(torch.arange(n)).view(n, HEADS, WIDTH // HEADS)
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


CAUSAL_LOOKUPS: list[type[nn.Module]] = [
    ComplexRotary, IndexedWeights, Memory, ProductsByPosition, RunningMean, TokenBefore,
]  # fmt: skip
NOT_CAUSAL_LOOKUPS: dict[Any, str] = {
    MemoryByPosition: "keys that are no tokens', with a mask of tokens",
    ProductWithPositionsOfAll: "a product that sums over tokens, but is no attention",
    TokenBehind: "tokens are padded elsewhere than before the first",
    TokensPaddedAndCutBefore: "tokens padded before the first are cut elsewhere than behind",
    SumFromLast: "does not keep tokens apart, or in their order",
    PickedByTwo: "its entries are picked by more than one tensor",
}
