"""Masks that are no infinity: how low is low, and what keeps it so."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import Model, _causal


class TenThousandTimes(Model):
    """The first GPT: scores times the triangle, less ten thousand where it is zero."""

    low = 1e4

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        seen = _causal(n).float()
        scores = q @ k.transpose(2, 3) * seen + -self.low * (1 - seen)
        return F.softmax(scores, -1) @ v


class TenThousandFilled(Model):
    """Megatron: ten thousand in the place of scores, which are divided then."""

    low = -1e4

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), self.low)
        return F.softmax(scores / 8, -1) @ v


class TenThousandAdded(Model):
    """BERT: a mask of ten thousand added by the fused operator."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = (1 - _causal(n).to(q.dtype)) * -10000.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class HighBesideInfinity(Model):
    """A bias that is too high for ten thousand, not for infinity."""

    low = -torch.inf

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), self.low)
        return F.softmax(scores + 150.0 * torch.arange(n), -1) @ v


class NineThousandTimes(TenThousandTimes):
    low = 9e3


class NineThousandFilled(TenThousandFilled):
    low = -9e3


class HighBesideTenThousand(HighBesideInfinity):
    low = -1e4


class FilledAgainWithLess(Model):
    """What infinity hid is shown by the bias that is added to ten thousand in its place."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        later = ~_causal(n)
        scores = (q @ k.transpose(2, 3)).masked_fill(later, -torch.inf).masked_fill(later, -1e4)
        return F.softmax(scores + 150.0 * torch.arange(n), -1) @ v


class LowBesideLow(Model):
    """Nine thousand where it is seen, ten where it is not."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.where(_causal(n), -9e3, -1e4)
        return F.softmax(q @ k.transpose(2, 3) + mask, -1) @ v


class LoweredTwice(Model):
    """Five thousand twice where it is seen, ten where it is not."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) + torch.where(_causal(n), 0.0, -1e4)
        for _ in range(2):
            scores = scores + torch.where(_causal(n), -5e3, 0.0)
        return F.softmax(scores, -1) @ v


class FilledNearly(Model):
    """Almost as low where it is seen as where it is not."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        later = ~_causal(n)
        scores = (q @ k.transpose(2, 3)).masked_fill(later, -1e4).masked_fill(~later, -9999.0)
        return F.softmax(scores, -1) @ v


class LoweredThenFilled(Model):
    """As low where it is seen as what is filled in where it is not."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) - 5e3
        return F.softmax((scores - 5e3).masked_fill(~_causal(n), -1e4), -1) @ v


class DividedAway(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e4)
        return F.softmax(scores / 50, -1) @ v


CAUSAL_MASKS: list[type[nn.Module]] = [
    TenThousandTimes, TenThousandFilled, TenThousandAdded, HighBesideInfinity,
]  # fmt: skip

_SHOWN = "the mask lets token 0 attend to token 1, which comes later; a mask is .* -1e4 or less"
_NONE = "no mask keeps a token from attending to later ones"

NOT_CAUSAL_MASKS: dict[Any, str] = {
    NineThousandTimes: _SHOWN,
    NineThousandFilled: _NONE,
    HighBesideTenThousand: _SHOWN,
    FilledAgainWithLess: _SHOWN,
    LowBesideLow: _SHOWN,
    LoweredTwice: _SHOWN,
    FilledNearly: _NONE,
    LoweredThenFilled: "-10000 may hide nothing behind sub",
    DividedAway: _NONE,
}
