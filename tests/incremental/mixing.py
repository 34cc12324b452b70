"""Tokens mixed without queries and keys: by running values, triangles of fixed weights, and
constants before the first token; and weights of an attention that the model returns to nobody."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import BLOCK, HEADS, WIDTH, AllPositions, Model


class Mixed(AllPositions):
    """What `mix` makes of [batch, tokens, channels] stands behind the attention."""

    def mix(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        return x + self.mix(x)


class RunningProduct(Mixed):
    def mix(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x + 3).cumprod(1) + x.logcumsumexp(1)


class RunningExtremes(Mixed):
    def mix(self, x: Tensor) -> Tensor:
        return x.cummax(1).values + x.cummin(1).indices


class MeanByTriangle(Mixed):
    """The mean of all tokens so far, as a product with a triangle."""

    def mix(self, x: Tensor) -> Tensor:
        triangle = torch.tril(torch.ones(x.shape[1], x.shape[1]))
        return (triangle / triangle.sum(1, keepdim=True)) @ x


class LearnedTriangle(Mixed):
    """A weight for each pair of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = nn.Parameter(torch.randn(HEADS, BLOCK, BLOCK) * 0.1)

    def lower(self, n: int) -> Tensor:
        return torch.tril(self.pairs[:, :n, :n])

    def mix(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        heads = x.view(b, n, HEADS, -1).transpose(1, 2)
        return (self.lower(n) @ heads).transpose(1, 2).reshape(b, n, WIDTH)


class ZerosBeforeConvolution(Mixed):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 4, groups=WIDTH)

    def joined(self, x: Tensor) -> Tensor:
        return torch.cat([x.new_zeros(1, WIDTH, 3), x], 2)

    def mix(self, x: Tensor) -> Tensor:
        return self.convolution(self.joined(x.transpose(1, 2))).transpose(1, 2)


class BehindLearnedToken(Mixed):
    """Each token is added to the next; a learned one to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.randn(1, 1, WIDTH))

    def mix(self, x: Tensor) -> Tensor:
        return torch.cat([self.begin, x], 1)[:, : x.shape[1]]


class RunningStates(Model):
    """Linear attention with its states written out: three operands, of one token each."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        states = torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(2)
        sizes = 1 / torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2))
        return torch.einsum("bhnd,bhnde,bhn->bhne", q, states, sizes)


class ReturnedWeights(Model):
    """The mean of the weights over the heads is computed, and dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        mask = torch.full((ids.shape[1], ids.shape[1]), float("-inf")).triu(1)
        return x + self.attention(x, x, x, attn_mask=mask)[0]


class ChannelsTurned(Mixed):
    def mix(self, x: Tensor) -> Tensor:
        return torch.roll(x, 3, -1)


class LastByNarrow(Model):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.hidden(ids).narrow(1, ids.shape[1] - 1, 1))


CAUSAL_MIXING: list[type[nn.Module]] = [
    RunningProduct, RunningExtremes, MeanByTriangle, LearnedTriangle, ZerosBeforeConvolution,
    BehindLearnedToken, RunningStates, ReturnedWeights, ChannelsTurned, LastByNarrow,
]  # fmt: skip


class RunningBackwards(Mixed):
    def mix(self, x: Tensor) -> Tensor:
        return x.flip(1).cumprod(1).flip(1)


class TurnedByFive(Mixed):
    """The first tokens get the last: of five tokens, each gets itself."""

    def mix(self, x: Tensor) -> Tensor:
        return torch.roll(x, 5, 1)


class TurnedBackByTen(Mixed):
    def mix(self, x: Tensor) -> Tensor:
        return torch.roll(x, (1, -10), (2, 1))


class PairsWithoutTriangle(LearnedTriangle):
    def lower(self, n: int) -> Tensor:
        return self.pairs[:, :n, :n]


class TriangleOneAhead(LearnedTriangle):
    def lower(self, n: int) -> Tensor:
        return torch.tril(self.pairs[:, :n, :n], 1)


class TriangleInThreeHeads(LearnedTriangle):
    def lower(self, n: int) -> Tensor:
        heads = torch.tensor([1.0, 1.0, 1.0, 0.0]).view(HEADS, 1, 1)
        return self.pairs[:, :n, :n] * (torch.tril(torch.ones(n, n)) * heads + 1 - heads)


class MeanOfLength(MeanByTriangle):
    def mix(self, x: Tensor) -> Tensor:
        return torch.tril(torch.ones(x.shape[1], x.shape[1])) / x.shape[1] @ x


class TriangleOfQueries(LearnedTriangle):
    """The weights of a token's own row, in the place of those of its column."""

    def lower(self, n: int) -> Tensor:
        return super().lower(n).transpose(1, 2)


class ZerosBehind(ZerosBeforeConvolution):
    def joined(self, x: Tensor) -> Tensor:
        return torch.cat([x, x.new_zeros(1, WIDTH, 3)], 2)


class ZerosTooFew(ZerosBeforeConvolution):
    def joined(self, x: Tensor) -> Tensor:
        return torch.cat([x.new_zeros(1, WIDTH, 2), x, x.new_zeros(1, WIDTH, 1)], 2)


class FirstCutOff(BehindLearnedToken):
    def mix(self, x: Tensor) -> Tensor:
        return torch.cat([self.begin, x, self.begin], 1)[:, 2:]


class WeightsMeanUsed(ReturnedWeights):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        return x + self.attention(x, x, x)[1].mean(-1, keepdim=True)


class Picked(Mixed):
    def mix(self, x: Tensor) -> Tensor:
        tokens = (x[0, :, 0] > 0).nonzero()[:, 0]
        return torch.zeros_like(x).index_copy(1, tokens, x[:, tokens])


class NarrowBeforeLast(Model):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.hidden(ids).narrow(1, ids.shape[1] - 2, 1))


_LATER = "which weights tokens, is not zero for later ones"
_JOINED = r"values are joined along the tokens; F.pad\(x, \(0, 0, 1, -1\)\)"

NOT_CAUSAL_MIXING: dict[Any, str] = {
    RunningBackwards: r"\(flip.default\): it does not keep tokens apart",
    TurnedByFive: r"\(roll.default\): it does not keep tokens apart",
    TurnedBackByTen: r"\(roll.default\): it does not keep tokens apart",
    PairsWithoutTriangle: _LATER,
    TriangleOneAhead: _LATER,
    TriangleInThreeHeads: _LATER,
    TriangleOfQueries: _LATER,
    MeanOfLength: "its value changes with the number of tokens",
    ZerosBehind: _JOINED,
    ZerosTooFew: _JOINED,
    FirstCutOff: _JOINED,
    WeightsMeanUsed: "scores|no mask keeps",
    Picked: "which tokens it picks depends on their values",
    NarrowBeforeLast: "it picks a token other than the last",
}
