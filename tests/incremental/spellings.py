"""More ways to write causal attention and what stands around it, each of one layer or two."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.incremental.models import HEADS, WIDTH, AllPositions, Model, Triangle, _causal

SIZE = WIDTH // HEADS


class Einsum(Model):
    """Tokens before heads, a mask of the upper triangle, weights in the type of queries."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(SIZE)
        scores = scores + torch.full((n, n), float("-inf")).triu(1)
        weights = F.softmax(scores.float(), -1).type_as(scores)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v).transpose(1, 2)


class TypeOfQueries(Model):
    """The type is that of a tensor whose dims are others."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        q = q.transpose(1, 2)
        scores = (q.transpose(1, 2) @ k.transpose(2, 3)).masked_fill(~_causal(n), float("-inf"))
        return F.softmax(scores, -1).type_as(q).to(v) @ v


class WithWeights(AllPositions):
    """torch's layer by default: it returns weights, and adds the mask in the product."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def hidden(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        x = self.embedding(ids) + self.positions(n)
        return x + self.attention(x, x, x, attn_mask=~_causal(n))[0]


class MaskLikeScores(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3)
        seen = torch.ones_like(scores, dtype=torch.bool).tril()
        return F.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v


class MaskOfScoresType(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3)
        scores = scores + scores.new_full((n, n), float("-inf")).triu(1)
        return F.softmax(scores, -1) @ v


class LowLikeScores(Model):
    """What stands in the place of scores is as large as they are."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3)
        seen = q.new_ones(n, n, dtype=torch.bool).tril()
        return F.softmax(torch.where(seen, scores, torch.full_like(scores, -1e30)), -1) @ v


class Subtracted(Model):
    """GPT-2's first: scores times the mask, less what is large where it is zero."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        seen = _causal(n).float()
        scores = q @ k.transpose(2, 3) * seen - 1e10 * (1 - seen)
        return F.softmax(scores, -1) @ v


class UnitQueries(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=3.0)


class PositionsLikeTokens(Model):
    """Positions counted in a tensor like the tokens, and a table of token types."""

    def hidden(self, ids: Tensor) -> Tensor:
        places = (torch.ones_like(ids).cumsum(1) - 1).expand_as(ids)
        kinds = torch.zeros_like(ids)
        return super().hidden(ids) + self.position(places) + self.embedding(kinds)


class Experts(AllPositions):
    """Two of four experts for each token; all are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, 4)
        self.experts = nn.Parameter(torch.randn(4, WIDTH, WIDTH) / WIDTH)

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        best, which = self.router(x).softmax(-1).topk(2)
        gates = torch.zeros_like(self.router(x)).scatter(-1, which, best)
        results = torch.einsum("btd,edf->btef", x, self.experts)
        picked = gates.gather(-1, which).sum(-1, keepdim=True)
        return x + (results * gates[..., None]).sum(2) / picked


class Sorted(AllPositions):
    """Along the last dim, which is sort's default."""

    def hidden(self, ids: Tensor) -> Tensor:
        return super().hidden(ids).sort()[0]


class Sink(Model):
    """A column of each head's own takes weight and gives nothing, as GPT-OSS has it."""

    def __init__(self) -> None:
        super().__init__()
        self.sinks = nn.Parameter(torch.randn(HEADS))

    def sink(self, q: Tensor, n: int) -> Tensor:
        return self.sinks.view(1, HEADS, 1, 1).expand(1, HEADS, n, 1)

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + torch.full((n, n), torch.finfo(scores.dtype).min).triu(1)

    def without_sink(self, weights: Tensor, n: int) -> Tensor:
        return weights[..., :-1]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = self.masked(q @ k.transpose(2, 3), n)
        scores = torch.cat([scores, self.sink(q, n)], -1)
        scores = scores - scores.max(-1, keepdim=True).values
        return self.without_sink(F.softmax(scores, -1), n) @ v


class SinkByQuery(Sink):
    """Cut off by the number of tokens; two columns of the query's own."""

    def sink(self, q: Tensor, n: int) -> Tensor:
        return q[..., :2]

    def without_sink(self, weights: Tensor, n: int) -> Tensor:
        return weights.narrow(-1, 0, n)


class LogSumOfScores(Triangle):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(self.triangle[:, :, :n, :n] == 0, -1e30)
        scores = scores - scores.logsumexp(-1, keepdim=True)
        return F.softmax(scores - scores.amax(-1, keepdim=True), -1) @ v


class BiasFromEnd(Model):
    """ALiBi counted from the last token, as MPT has it; slopes that are no powers of two."""

    def bias(self, n: int) -> Tensor:
        return torch.arange(1 - n, 1).view(1, n) * torch.tensor([0.3, 0.2, 0.1, 0.7]).view(4, 1, 1)

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores.masked_fill(~_causal(n), torch.finfo(scores.dtype).min)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = self.masked(q @ k.transpose(2, 3) * 0.3 + self.bias(n), n)
        return F.softmax(scores.float(), -1) @ v


class LargerOfMasked(Model):
    """XGLM: what a sum with the lowest number made infinite becomes that number."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        low = torch.finfo(q.dtype).min
        scores = q @ k.transpose(2, 3) + torch.full((n, n), low).triu(1)
        return F.softmax(torch.max(scores, torch.full((), low)), -1) @ v


class WrittenInParts(AllPositions):
    """Halves of each token's entries are written into a tensor that was empty."""

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        y = x.new_empty(*x.shape[:-1], 2 * WIDTH)
        y[..., :WIDTH].copy_(x)
        y[..., WIDTH:].copy_(x[:, :, :1].expand_as(x))
        return y[..., WIDTH // 2 : -WIDTH // 2]


class DropoutOfPositions(Model):
    """Dropout that evaluation leaves in the graph, on a table."""

    training_mode = False

    def positions(self, n: int) -> Tensor:
        return F.dropout(super().positions(n), 0.1, self.training_mode)


class TrainingDropoutOfPositions(DropoutOfPositions):
    training_mode = True


class TokensSorted(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        return super().hidden(ids).topk(1, 1)[0]


class TokensPicked(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        return super().hidden(ids).gather(1, (ids % 2)[..., None].expand(-1, -1, WIDTH))


class LengthOfTokens(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        return F.normalize(super().hidden(ids), dim=1)


class UnmaskedEinsum(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        weights = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
        return torch.einsum("bhqk,bhkd->bhqd", weights, v)


class MaskNotAdded(Model):
    """The product leaves its first operand out."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.full((1, n, n), float("-inf")).triu(1)
        scores = torch.baddbmm(mask, q[0], k[0].transpose(1, 2), beta=0)
        return (F.softmax(scores, -1) @ v[0])[None]


class HighInsteadOfLow(Model):
    """Later tokens get the higher scores."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3) - (~_causal(n)).float() * -1e10
        return F.softmax(scores, -1) @ v


class MaskTakenBack(Model):
    """What the mask took from the scores is added again."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e9)
        return F.softmax(scores + (~_causal(n)).float() * 1e9, -1) @ v


class MaskFilledAgain(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), float("-inf"))
        return F.softmax(scores.masked_fill(~_causal(n), 0.0), -1) @ v


class MaskMadeSmall(Model):
    """Low scores are multiplied by so little that they are like any other."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e9)
        return F.softmax(scores * 1e-9, -1) @ v


class MaskDividedAway(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e9)
        return F.softmax(scores / 1e9, -1) @ v


class HalfMaskedSink(Sink):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return scores + torch.full((n, n), torch.finfo(scores.dtype).min).triu(2)


class SinkKept(Sink):
    """The first token's column is cut off instead."""

    def without_sink(self, weights: Tensor, n: int) -> Tensor:
        return weights[..., 1:]


class SinkOfLaterTokens(Sink):
    def sink(self, q: Tensor, n: int) -> Tensor:
        return (q @ q.transpose(2, 3)).amax(-1, keepdim=True)


class SinkBefore(Sink):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = torch.cat([self.sink(q, n), self.masked(q @ k.transpose(2, 3), n)], -1)
        return F.softmax(scores, -1)[..., 1:] @ v


class OnlyLaterTokens(Model):
    """Where a mask leaves nothing, all low scores are as high as each other."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.full((n, n), torch.finfo(q.dtype).min).triu(0)
        return F.softmax(q @ k.transpose(2, 3) + mask, -1) @ v


class OnlyLaterTokensFused(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.full((n, n), torch.finfo(q.dtype).min).triu(0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class TokensHideScores(Model):
    """A token that takes out all its scores leaves low ones, as high as those of later tokens."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3)).masked_fill(~_causal(n), -1e9)
        return F.softmax(scores.masked_fill(q[..., :1] > 0, -1e9), -1) @ v


class ScoresHideScores(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(2, 3)
        scores = torch.where(scores > 0, scores, -1e9).masked_fill(~_causal(n), -1e9)
        return F.softmax(scores, -1) @ v


class LowNumberAdded(Model):
    """All scores are as low as those of later tokens."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = (q @ k.transpose(2, 3) - 1e9).masked_fill(~_causal(n), -1e9)
        return F.softmax(scores, -1) @ v


class OneHeadSeesNone(Model):
    """Each head attends to the token that is as many before as heads are before it."""

    def mask(self, n: int) -> Tensor:
        i = torch.arange(n)
        seen = i[:, None] - i == torch.arange(HEADS)[:, None, None]
        return torch.where(seen, 0.0, -1e9)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.softmax(q @ k.transpose(2, 3) + self.mask(n), -1) @ v


class OneHeadSeesNoneFused(OneHeadSeesNone):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(n))


class OneHeadSeesNoneByBool(OneHeadSeesNone):
    """What attends to none by that is zero."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(n) == 0)


class BiasByLength(BiasFromEnd):
    """The slope changes with the number of tokens."""

    def bias(self, n: int) -> Tensor:
        return super().bias(n) * (torch.arange(n) + 1).amax()


class BiasOfAllFromEnd(BiasFromEnd):
    """Masked scores are zero, whatever the number of tokens added to the others."""

    def masked(self, scores: Tensor, n: int) -> Tensor:
        return super().masked(torch.where(_causal(n).triu(-3), scores, 0.0), n)


class BiasFromEndTimes(BiasFromEnd):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        return super().masked(scores.tanh(), n)


class BiasFromEndIsLargest(BiasFromEnd):
    def masked(self, scores: Tensor, n: int) -> Tensor:
        scores = super().masked(scores, n)
        return scores * scores.amax(-1, keepdim=True)


class WrittenOneOn(AllPositions):
    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        y = torch.zeros(1, x.shape[1] + 1, WIDTH)
        return torch.slice_scatter(y, x, 1, 1)[:, :-1]


class PlaceOfLargest(Sink):
    """Where the sink is the largest, its place is behind the text."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = torch.cat([self.masked(q @ k.transpose(2, 3), n), self.sink(q, n)], -1)
        return v * scores.max(-1, keepdim=True).indices


class GroupedByExpert(AllPositions):
    """Tokens sorted by their expert, cut in the middle."""

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids)
        order = self.head(x[0])[:, :2].argmax(-1).sort().indices
        return x[:, order]


CAUSAL_SPELLINGS: list[type[nn.Module]] = [
    Einsum, TypeOfQueries, WithWeights, MaskLikeScores, MaskOfScoresType, LowLikeScores, Subtracted,
    UnitQueries, PositionsLikeTokens, Experts, Sorted, DropoutOfPositions, Sink, SinkByQuery,
    LogSumOfScores, BiasFromEnd, LargerOfMasked, WrittenInParts,
    TokensHideScores, ScoresHideScores, OneHeadSeesNoneByBool,
]  # fmt: skip

NOT_CAUSAL_SPELLINGS: dict[Any, str] = {
    TokensSorted: r"\(topk.default\): it computes over the tokens",
    TokensPicked: r"\(gather.default\): it picks among tokens",
    LengthOfTokens: r"\(linalg_vector_norm.default\): it computes over the tokens",
    UnmaskedEinsum: "no mask keeps a token from attending to later ones",
    TrainingDropoutOfPositions: "dropout in training mode",
    MaskNotAdded: "no mask keeps a token from attending to later ones",
    HighInsteadOfLow: "the mask lets token 0 attend to token 1",
    MaskTakenBack: "the mask lets token 0 attend to token 1",
    MaskFilledAgain: "no mask keeps a token from attending to later ones",
    MaskMadeSmall: "no mask keeps a token from attending to later ones",
    HalfMaskedSink: "the mask lets token 0 attend to token 1",
    SinkKept: "columns beside those of the keys are not cut off",
    SinkOfLaterTokens: "no mask keeps a token from attending to later ones",
    SinkBefore: "values are joined along the tokens|tokens lie along|scores are joined",
    OnlyLaterTokens: "the mask lets token 0 attend to none",
    OnlyLaterTokensFused: "the mask lets token 0 attend to none",
    LowNumberAdded: r"\(sub.Tensor\): the mask lets token 0 attend to none",
    OneHeadSeesNone: "the mask lets token 0 attend to none",
    OneHeadSeesNoneFused: "the mask lets token 0 attend to none",
    BiasByLength: "its value changes with the number of tokens",
    BiasOfAllFromEnd: "among scores that the number of tokens shifts, others are not",
    BiasFromEndTimes: "scores that the number of tokens shifts are not only added to",
    BiasFromEndIsLargest: "scores that change with the number of tokens",
    WrittenOneOn: "dim 1 of .* is s.* \\+ 1, not the text's",
    PlaceOfLargest: "the place of a largest score, beside columns of no key",
    GroupedByExpert: r"it computes over the tokens",
    MaskDividedAway: "no mask keeps a token from attending to later ones",
}
