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


class PaddingHidden(Model):
    """No token sees those of padding, a third of all; the first may be some."""

    def hidden(self, ids: Tensor) -> Tensor:
        self.padding = (ids % 3 == 0)[:, None, None, :]
        return super().hidden(ids)

    def mask(self, n: int) -> Tensor:
        return _causal(n) & ~self.padding

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(n))


class PaddingAdded(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        padding = torch.zeros(1, 1, 1, n).masked_fill(self.padding, -torch.inf)
        return torch.full((n, n), -torch.inf).triu(1) + padding.expand(1, 4, 1, n)


class PaddingAndWindow(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        i = torch.arange(n)
        return torch.logical_and(~self.padding & (i[None] > i[:, None] - 5), _causal(n))


class PaddingLowBesideInfinity(PaddingHidden):
    """As Hugging Face's models have it; minus infinity hides what is later whatever is added."""

    def mask(self, n: int) -> Tensor:
        padding = (1.0 - (~self.padding).to(torch.float32)) * torch.finfo(torch.float32).min
        return torch.full((n, n), -torch.inf).triu(1) + padding


class PaddingInfinite(PaddingHidden):
    """The sum of both infinities is no number, in the place of a later token, too."""

    def mask(self, n: int) -> Tensor:
        padding = torch.zeros(1, 1, 1, n).masked_fill(self.padding, torch.inf)
        return torch.full((n, n), -torch.inf).triu(1) + padding


class PaddingNegated(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        padding = -torch.zeros(1, 1, 1, n).masked_fill(self.padding, -torch.inf)
        return torch.full((n, n), -torch.inf).triu(1) + padding


class PaddingInstead(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        return _causal(n) | self.padding


class PaddingAlone(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        return ~self.padding & ~self.padding.transpose(2, 3)


class PaddingOneAhead(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        i = torch.arange(n)
        return (i[None] <= i[:, None] + 1) & ~self.padding


class PaddingTurned(PaddingHidden):
    def mask(self, n: int) -> Tensor:
        return ~(_causal(n) & ~self.padding)


class PaddingInFloats(PaddingHidden):
    """Zero and one hide nothing."""

    def mask(self, n: int) -> Tensor:
        return super().mask(n).to(torch.float32)


class PaddingLow(PaddingAdded):
    """A token of which all that it may see is padding sees all others as well."""

    def mask(self, n: int) -> Tensor:
        padding = torch.zeros(1, 1, 1, n).masked_fill(self.padding, -1e9)
        return torch.full((n, n), -1e9).triu(1) + padding


class PaddingLowForAll(PaddingLow):
    """Its extent is written as that of the text."""

    def mask(self, n: int) -> Tensor:
        padding = torch.zeros(1, 1, 1, n).masked_fill(self.padding, -1e9).expand(1, 4, 1, n)
        return torch.full((n, n), -1e9).triu(1) + padding


class PaddingLowByHead(PaddingLow):
    def mask(self, n: int) -> Tensor:
        padding = torch.zeros(1, 1, 1, n).masked_fill(self.padding, -1e9)
        others = torch.zeros(1, 3, 1, n) * self.padding
        return torch.full((n, n), -1e9).triu(1) + torch.cat([padding, others], 1)


class PaddingLowByTable(PaddingLow):
    """The number of each token in a table."""

    def hidden(self, ids: Tensor) -> Tensor:
        self.numbers = self.look_up(torch.arange(50.0).remainder(3).eq(0) * -1e9, ids)
        return Model.hidden(self, ids)

    def look_up(self, table: Tensor, ids: Tensor) -> Tensor:
        return F.embedding(ids, table[:, None])

    def mask(self, n: int) -> Tensor:
        return torch.full((n, n), -1e9).triu(1) + self.numbers.view(1, 1, 1, n)


class PaddingLowByIndex(PaddingLowByTable):
    def look_up(self, table: Tensor, ids: Tensor) -> Tensor:
        return table[ids]


class PaddingMadeFinite(PaddingAdded):
    def mask(self, n: int) -> Tensor:
        return super().mask(n).clamp(min=-1e30)


class PaddingInOneHead(PaddingAdded):
    """The triangle is in three heads of four."""

    def mask(self, n: int) -> Tensor:
        heads = torch.tensor([1.0, 1.0, 1.0, 0.0]).view(1, 4, 1, 1)
        padding = torch.zeros(1, 1, 1, n).masked_fill(self.padding, -torch.inf)
        triangle = torch.full((n, n), -torch.inf).triu(1)
        return torch.where(heads == 1, triangle, 0.0) + padding


class PaddingThenSoftmax(PaddingAdded):
    """The lowest number takes the place of infinity."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) + self.mask(n)
        scores = torch.maximum(scores, torch.tensor(torch.finfo(q.dtype).min))
        return F.softmax(scores, -1) @ v


CAUSAL_MASKS: list[type[nn.Module]] = [
    TenThousandTimes, TenThousandFilled, TenThousandAdded, HighBesideInfinity,
    PaddingHidden, PaddingAdded, PaddingAndWindow, PaddingLowBesideInfinity,
    PaddingLow, PaddingLowForAll, PaddingLowByHead, PaddingLowByTable, PaddingLowByIndex,
    PaddingThenSoftmax,
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
    PaddingInstead: _NONE,
    PaddingAlone: _NONE,
    PaddingOneAhead: _NONE,
    PaddingTurned: _NONE,
    PaddingInFloats: _NONE,
    PaddingMadeFinite: "expand is a mask that tokens make themselves, which this may undo",
    PaddingInOneHead: _SHOWN,
}
