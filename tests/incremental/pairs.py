"""Scores to which what keys or queries say of themselves is added, or that are nothing else."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import HEADS, WIDTH, AllPositions, _causal


class OfKeys(AllPositions):
    """A number of each key is added to its scores."""

    def __init__(self) -> None:
        super().__init__()
        self.says = nn.Linear(WIDTH // HEADS, 1)

    def bias(self, k: Tensor, n: int) -> Tensor:
        return self.says(k).transpose(2, 3)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -torch.inf)
        return F.softmax(scores + self.bias(k, n), -1) @ v


class OfKeysExpanded(OfKeys):
    """As the mask of the fused operator, of each query's own."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        bias = self.bias(k, n).expand(-1, -1, n, -1).masked_fill(~_causal(n), -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class OfKeysMasked(OfKeys):
    """The mask is added to what the keys have, and both to the scores."""

    def bias(self, k: Tensor, n: int) -> Tensor:
        return super().bias(k, n) + torch.full((n, n), -torch.inf).triu(1)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.softmax(self.bias(k, n) + q @ k.transpose(2, 3), -1) @ v


class Forgetting(OfKeys):
    """The sum of what the tokens between forget: one of queries less one of keys."""

    def bias(self, k: Tensor, n: int) -> Tensor:
        forgotten = F.logsigmoid(self.says(k)).squeeze(-1).cumsum(-1)
        return forgotten[..., :, None] - forgotten[..., None, :]


class DecayingState(Forgetting):
    """A state that decays by what tokens say, written as products of pairs."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        decay = self.bias(k, n).masked_fill(~_causal(n), -torch.inf).exp()
        return (q @ k.transpose(2, 3) * decay) @ v


class WeighedPositions(OfKeys):
    """A table of distances that each query weighs."""

    def bias(self, k: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        return self.says(k).sigmoid() * (i[:, None] - i).abs() * -0.2


class SameToken(AllPositions):
    """Which tokens are the same as the query's."""

    def hidden(self, ids: Tensor) -> Tensor:
        same = (ids[:, :, None] == ids[:, None, :]).float()
        weights = F.softmax((same * 2).masked_fill(~_causal(ids.shape[1]), -torch.inf), -1)
        return weights @ super().hidden(ids)


class OfKeysUnmasked(OfKeys):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.softmax(q @ k.transpose(2, 3) + self.bias(k, n), -1) @ v


class ForgettingUnmasked(Forgetting):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.softmax(self.bias(k, n), -1) @ v


class MaskSubtracted(OfKeys):
    """Infinity less than nothing is the highest."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        hidden = self.bias(k, n).masked_fill(~_causal(n), -1e9)
        return F.softmax(q @ k.transpose(2, 3) - hidden, -1) @ v


class MaskNegated(OfKeys):
    """What one mask takes away the other one gives back."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        later = ~_causal(n)
        given = -self.bias(k, n).masked_fill(later, -1e9)
        scores = (q @ k.transpose(2, 3)).masked_fill(later, -1e9)
        return F.softmax(scores + given, -1) @ v


class MaskWeighed(OfKeys):
    """As high as the mask is low, where a key says so."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        later = torch.ones(n, n).triu(1)
        scores = (q @ k.transpose(2, 3)).masked_fill(later == 1, -1e9)
        return F.softmax(scores + self.bias(k, n).sigmoid() * (later * 2e9), -1) @ v


class Padding(OfKeys):
    """Of a text that begins with such tokens the first one attends to all."""

    def hidden(self, ids: Tensor) -> Tensor:
        self.low = (ids == 0)[:, None, None, :].float() * -1e9
        return super().hidden(ids)

    def bias(self, k: Tensor, n: int) -> Tensor:
        return self.low

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) + self.bias(k, n)
        return F.softmax(scores.masked_fill(~_causal(n), -1e9), -1) @ v


class PaddingChosen(Padding):
    def bias(self, k: Tensor, n: int) -> Tensor:
        return torch.where(self.low.expand(-1, -1, n, -1) < 0, -1e9, 0.0)


class OtherTokensHidden(SameToken):
    def hidden(self, ids: Tensor) -> Tensor:
        others = (ids[:, :, None] != ids[:, None, :]).float() * -1e9
        weights = F.softmax(others.masked_fill(~_causal(ids.shape[1]), -1e9), -1)
        return weights @ AllPositions.hidden(self, ids)


class SumOverQueries(OfKeys):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return v + self.bias(k, n).expand(-1, -1, n, -1).sum(2)[..., None]


class SumOverKeys(OfKeys):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return v + self.bias(k, n).expand(-1, -1, n, -1).sum(3, keepdim=True)


class KeysHide(OfKeys):
    """Where a key says no, its score is low, whoever asks."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(self.bias(k, n) < 0, -1e9)
        return F.softmax(scores.masked_fill(~_causal(n), -1e9), -1) @ v


class TooSteep(OfKeys):
    """Scores that are as low as what the mask puts in the place of others."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) * 1e9
        return F.softmax(scores.masked_fill(~_causal(n), -1e9), -1) @ v


class Reversed(Forgetting):
    """Queries along the last dim."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = self.bias(k, n).transpose(2, 3).masked_fill(~_causal(n), -torch.inf)
        return F.softmax(scores, -1) @ v


CAUSAL_PAIRS: list[type[nn.Module]] = [
    OfKeys, OfKeysExpanded, OfKeysMasked, Forgetting, DecayingState, WeighedPositions, SameToken,
    Padding, PaddingChosen, OtherTokensHidden, KeysHide,
]  # fmt: skip

_NONE = "no mask keeps a token from attending to later ones"

NOT_CAUSAL_PAIRS: dict[Any, str] = {
    OfKeysUnmasked: _NONE,
    ForgettingUnmasked: _NONE,
    MaskSubtracted: _NONE,
    MaskNegated: _NONE,
    TooSteep: "scores times a number as large as a mask's",
    MaskWeighed: _NONE,
    SumOverQueries: "scores that were not made weights by a softmax over the keys",
    SumOverKeys: "scores that were not made weights by a softmax over the keys",
    Reversed: "softmax over the queries",
}
