"""Attention whose weights are no softmax, or one that is written out: zero for later tokens."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import HEADS, Model, _causal

INFINITE = float("-inf")


class LinearAttention(Model):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        weights = (scores * scores) * torch.tril(torch.ones(n, n))
        return weights / (weights.sum(-1, keepdim=True) + 1e-6)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return self.weights(q @ k.transpose(2, 3), n) @ v


class Retention(LinearAttention):
    """Fewer for earlier tokens, another share in each head."""

    def weights(self, scores: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        share = torch.tensor([0.9, 0.8, 0.7, 0.6])[:, None, None]
        decay = torch.where(_causal(n), share ** (i[:, None] - i).abs(), 0.0)
        weights = scores * decay
        return weights / weights.abs().sum(-1, keepdim=True).clamp(min=1)


class TriangleOfScores(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return torch.tril(scores) * 0.1


class Sigmoids(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return torch.sigmoid(scores.masked_fill(~_causal(n), -1e9)) * 0.3


class FilledWithZero(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return F.relu(torch.where(~_causal(n), 0.0, scores)) * 0.3


class WrittenSoftmax(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        scores = scores.masked_fill(~_causal(n), INFINITE)
        weights = torch.exp(scores - scores.max(-1, keepdim=True).values)
        return weights / weights.sum(-1, keepdim=True)


class Difference(LinearAttention):
    """Of two softmaxes, masked once more."""

    def weights(self, scores: Tensor, n: int) -> Tensor:
        scores = scores.masked_fill(~_causal(n), INFINITE)
        weights = F.softmax(scores, -1) - 0.3 * F.softmax(scores * 0.2, -1)
        return torch.nan_to_num(weights).masked_fill(~_causal(n), 0.0)


class WeighedDistances(Model):
    """Each query says what a distance counts; nothing beyond the sixth."""

    def bias(self, q: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        distance = (i[:, None] - i)[None, None]
        found = q.gather(-1, distance.clamp(0, 5).expand(*q.shape[:2], -1, -1))
        return found.masked_fill((distance < 0) | (distance > 5), 0.0)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) + self.bias(q, n)
        return F.softmax(scores.masked_fill(~_causal(n), INFINITE), -1) @ v


class WeighedDistancesFused(WeighedDistances):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = self.bias(q, n) + torch.full((n, n), INFINITE).triu(1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class WeighedUnmasked(WeighedDistances):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(q, n) + q @ q.mT)


class LowIsTrue(WeighedDistances):
    """A number is true, however low it is."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = (q @ k.mT).masked_fill(~_causal(n), -1e9).to(torch.bool)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class DistancesOfKeys(WeighedDistances):
    """The bias of a pair lies where that of the other order belongs."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = (self.bias(q, n) + q @ q.mT).masked_fill(~_causal(n), INFINITE).mT
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class DistancesFromLast(WeighedDistances):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        index = (n - 1 - torch.arange(n)).clamp(max=5).expand(*q.shape[:2], n, n)
        scores = q @ k.transpose(2, 3) + q.gather(-1, index)
        return F.softmax(scores.masked_fill(~_causal(n), INFINITE), -1) @ v


class ZerosThenSoftmax(LinearAttention):
    """A score of zero is one like any other."""

    def weights(self, scores: Tensor, n: int) -> Tensor:
        return F.softmax(scores * torch.tril(torch.ones(n, n)), -1)


class ZerosPlusOne(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return torch.tril(scores) + 1


class NumberOverZeros(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return scores / (torch.tril(scores) + 1)


class ZerosOverZeros(LinearAttention):
    """Zero over zero is no number, at places that a shorter text does not have."""

    def weights(self, scores: Tensor, n: int) -> Tensor:
        return torch.tril(scores) / torch.tril(torch.ones(n, n))


class MeanOfWeights(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        weights = torch.tril(scores)
        return weights - weights.mean(-1, keepdim=True)


class LargestOfWeights(LinearAttention):
    """Zeros of later tokens are larger than what is below zero."""

    def weights(self, scores: Tensor, n: int) -> Tensor:
        weights = torch.tril(scores)
        return weights * weights.amax(-1, keepdim=True)


class ZeroWhereSeen(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return scores.masked_fill(_causal(n), 0.0)


class ZeroInOneHead(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return scores * (_causal(n) | (torch.arange(HEADS)[:, None, None] > 0))


class OneAheadInTriangle(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return torch.tril(scores, 1)


class CosineOfWeights(LinearAttention):
    def weights(self, scores: Tensor, n: int) -> Tensor:
        return torch.cos(torch.tril(scores))


CAUSAL_WEIGHTS: list[type[nn.Module]] = [
    LinearAttention, Retention, TriangleOfScores, Sigmoids, FilledWithZero, WrittenSoftmax,
    Difference, WeighedDistances, WeighedDistancesFused,
]  # fmt: skip

_SUMS_OVER_TOKENS = r"\(matmul.default\): a product that sums over tokens, but is no attention"
NOT_CAUSAL_WEIGHTS: dict[Any, str] = {
    ZerosThenSoftmax: "no mask keeps a token from attending to later ones",
    WeighedUnmasked: "no mask keeps a token from attending to later ones",
    LowIsTrue: "no mask keeps a token from attending to later ones",
    DistancesOfKeys: "its mask is no scores of queries and keys, in this order",
    DistancesFromLast: "its value changes with the number of tokens",
    ZerosPlusOne: _SUMS_OVER_TOKENS,
    NumberOverZeros: _SUMS_OVER_TOKENS,
    ZerosOverZeros: _SUMS_OVER_TOKENS,
    MeanOfWeights: r"\(mean.dim\): scores that were not made weights",
    LargestOfWeights: "no mask keeps a token from attending to later ones",
    ZeroWhereSeen: _SUMS_OVER_TOKENS,
    ZeroInOneHead: _SUMS_OVER_TOKENS,
    OneAheadInTriangle: "a triangle that is not of queries and the keys up to theirs",
    CosineOfWeights: _SUMS_OVER_TOKENS,
}
