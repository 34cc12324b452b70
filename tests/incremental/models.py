"""Small language models, each with another way to write causal attention and positions; and models
that look ahead, each in another way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, BLOCK = 50, 32, 4, 41
MOST_TOKENS = BLOCK - 1  # a dim as large as a mask's buffer would be exported as static


class Model(nn.Module):
    """Two layers, learned positions, the logits of the last token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)]) for _ in range(2)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("triangle", torch.ones(BLOCK, BLOCK).tril().view(1, 1, BLOCK, BLOCK))

    def positions(self, n: int) -> Tensor:
        return self.position(torch.arange(n))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def hidden(self, ids: Tensor) -> Tensor:
        b, n = ids.shape
        x = self.embedding(ids) + self.positions(n)
        for qkv, out in self.layers:  # type: ignore[misc]
            parts = qkv(self.norm(x)).split(WIDTH, 2)
            q, k, v = (t.view(b, n, HEADS, WIDTH // HEADS).transpose(1, 2) for t in parts)
            y = self.attend(q, k, v, n)
            x = x + out(y.transpose(1, 2).reshape(b, n, WIDTH))
        return x

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.hidden(ids)[:, -1])


def _causal(n: int) -> Tensor:
    i = torch.arange(n)
    return i[None, :] <= i[:, None]


class Triangle(Model):
    """A buffer of zeros and ones, masked fill."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(WIDTH // HEADS))
        scores = scores.masked_fill(self.triangle[:, :, :n, :n] == 0, float("-inf"))
        return F.softmax(scores, -1) @ v


class SoftCap(Model):
    """tanh, an additive mask of the lowest number."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = torch.tanh(torch.matmul(q, k.transpose(2, 3)) * 0.3 / 20) * 20
        mask = torch.where(_causal(n), 0.0, torch.finfo(torch.float32).min)
        weights = F.softmax(scores + mask[None, None], -1, dtype=torch.float32)
        return weights.to(q.dtype) @ v


class Window(Model):
    """Each token attends to five."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        mask = _causal(n) & (i[None, :] > i[:, None] - 5)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Alibi(Model):
    """Scores that fall with distance, through baddbmm; no positions."""

    def positions(self, n: int) -> Tensor:
        return torch.zeros(n, WIDTH)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        slope = torch.tensor([0.5, 0.25, 0.125, 0.0625])
        bias = (slope[:, None] * torch.arange(n)[None, :]).view(HEADS, 1, n)
        q, k, v = (t.reshape(-1, n, WIDTH // HEADS) for t in (q, k, v))
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), beta=1.0, alpha=0.3)
        scores = torch.where(_causal(n)[None], scores, torch.tensor(float("-inf")))
        return torch.bmm(F.softmax(scores, -1), v).view(1, HEADS, n, WIDTH // HEADS)


class Rotary(Model):
    """Rotary positions, two heads of keys for four of queries."""

    def positions(self, n: int) -> Tensor:
        return torch.zeros(n, WIDTH)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        frequency = 1.0 / (10000 ** (torch.arange(0, 8, 2) / 8))
        angle = torch.outer(torch.arange(n).float(), frequency)
        angle = torch.cat([angle, angle], -1)

        def turn(x: Tensor) -> Tensor:
            half = torch.cat([-x[..., 4:], x[..., :4]], -1)
            return x * angle.cos() + half * angle.sin()

        k, v = (t[:, :2].repeat_interleave(2, dim=1) for t in (turn(k), v))
        return F.scaled_dot_product_attention(turn(q), k, v, is_causal=True)


class AllPositions(Triangle):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.hidden(ids))


class LastByIndex(Model):
    def forward(self, ids: Tensor) -> tuple[Tensor, None]:
        return self.head(self.hidden(ids)[:, [-1], :]), None


class LastByLength(Model):
    """Nothing is kept of what the number of tokens changes."""

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) / ids.shape[1]


class SameForEachLength(Triangle):
    """Numbers of the length that are the same for each, and cuts that leave all."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        scores = q * torch.sym_min(n, 1) @ k[:, :, :n].transpose(-2, -1)
        scores = scores[..., :n].masked_fill(self.triangle[:, :, :n, :n] == 0, float("-inf"))
        return F.softmax(scores, -1) @ v


class CausalConvolution(AllPositions):
    """Tokens padded before the first, as Mamba has them: each channel by itself, then every second
    token, then one alone. Between them, channels are padded."""

    def __init__(self) -> None:
        super().__init__()
        self.by_channel = nn.Conv1d(WIDTH, WIDTH, 4, groups=WIDTH)
        self.apart = nn.Conv1d(WIDTH + 2, WIDTH, 3, dilation=2, bias=False)
        self.alone = nn.Conv1d(WIDTH, WIDTH, 1)

    def hidden(self, ids: Tensor) -> Tensor:
        x = super().hidden(ids).transpose(1, 2)
        x = F.silu(self.by_channel(F.pad(x, (3, 0))))
        x = self.apart(F.pad(F.pad(x, (0, 0, 1, 1)), (4, 0), value=0.5))
        return self.alone(x).transpose(1, 2)


class ConvolutionCutToTokens(AllPositions):
    """Padded on both sides by the convolution, as Mamba has it; what looks ahead is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.by_channel = nn.Conv1d(WIDTH, WIDTH, 4, groups=WIDTH, padding=3)
        self.apart = nn.Conv1d(WIDTH, WIDTH, 3, dilation=2, padding=4)

    def hidden(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        x = super().hidden(ids).transpose(1, 2)
        x = F.silu(self.by_channel(x)[..., :n])
        x = x + self.by_channel(x)[:, :, :-3] + self.by_channel(x).narrow(2, 0, n)
        return self.apart(x)[..., :n].transpose(1, 2)


CAUSAL = (
    Model, Triangle, SoftCap, Window, Alibi, Rotary, AllPositions, LastByIndex, LastByLength,
    SameForEachLength, CausalConvolution, ConvolutionCutToTokens,
)  # fmt: skip


class LooksAheadAtOneLength(Triangle):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        next_one = (i[None, :] == i[:, None] + 1) * (n == 17)
        mask = self.triangle[:, :, :n, :n] + next_one
        scores = (q @ k.transpose(-2, -1)).masked_fill(mask == 0, float("-inf"))
        return F.softmax(scores, -1) @ v


class Bidirectional(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class OneAhead(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        i = torch.arange(n)
        mask = i[None, :] <= i[:, None] + 1
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class NoMask(Model):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        return F.softmax(q @ k.transpose(-2, -1), -1) @ v


class WeakMask(Model):
    """Scores of -10 are small, not absent."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        mask = torch.where(_causal(n), 0.0, -10.0)
        return F.softmax(q @ k.transpose(-2, -1) + mask, -1) @ v


class MeanOverTokens(Model):
    def forward(self, ids: Tensor) -> Tensor:
        x = self.hidden(ids)
        return self.head(x - x.mean(1, keepdim=True))[:, -1]


class TableThatChanges(Model):
    def positions(self, n: int) -> Tensor:
        return self.position(torch.arange(n)) * (torch.arange(n) / n)[:, None]


class Convolution(Model):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.convolution(self.hidden(ids).transpose(1, 2)).transpose(1, 2)
        return self.head(x)[:, -1]


class PaddedOnBothSides(Convolution):
    """Each result is of two tokens before and its own; two more are of none that ends the text."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=2)

    def cut(self, x: Tensor, n: int) -> Tensor:
        return x

    def forward(self, ids: Tensor) -> Tensor:
        x = self.cut(self.convolution(self.hidden(ids).transpose(1, 2)), ids.shape[1])
        return self.head(x.transpose(1, 2))


class CutOffTooFew(PaddedOnBothSides):
    def cut(self, x: Tensor, n: int) -> Tensor:
        return x[..., :-1]


class CutOffFirst(PaddedOnBothSides):
    def cut(self, x: Tensor, n: int) -> Tensor:
        return x[..., 2:]


class CutOffBoth(PaddedOnBothSides):
    def cut(self, x: Tensor, n: int) -> Tensor:
        return x[..., 1:-1]


class PaddedOneTooMany(Model):
    """Each result is of the token before and earlier ones, in a dim longer than the text."""

    def forward(self, ids: Tensor) -> Tensor:
        x = F.pad(self.hidden(ids).transpose(1, 2), (3, 0))
        return self.head(F.conv1d(x, torch.ones(WIDTH, WIDTH, 3)).transpose(1, 2))[:, -1]


class PaddedBehind(Model):
    def forward(self, ids: Tensor) -> Tensor:
        x = F.pad(self.hidden(ids).transpose(1, 2), (1, 1))
        return self.head(F.conv1d(x, torch.ones(WIDTH, WIDTH, 3)).transpose(1, 2))[:, -1]


class PaddedAlone(Model):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(F.pad(self.hidden(ids), (0, 0, 1, 0)))[:, -1]


class FirstToken(Model):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.hidden(ids)[:, 0])


class Dropout(Model):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(F.dropout(self.hidden(ids), 0.1, True))[:, -1]


class Backwards(Model):
    def hidden(self, ids: Tensor) -> Tensor:
        return super().hidden(ids.flip(1))


class LastAddedToAll(Model):
    def forward(self, ids: Tensor) -> Tensor:
        x = self.hidden(ids)
        return self.head(x + x[:, -1:])


class RowByLength(Model):
    def positions(self, n: int) -> Tensor:
        return self.position.weight[n - 1]


class TableTimesLength(Model):
    def positions(self, n: int) -> Tensor:
        table = super().positions(n)
        return torch.add(table, table, alpha=n)


class InterleavedTable(Model):
    """Of two tables one after the other, which is begun later in longer texts, each second row."""

    def positions(self, n: int) -> Tensor:
        places = torch.arange(n)
        return self.position(torch.stack([places, places * 0]).view(-1)[::2])


class PositionsByToken(Model):
    """Each token looks up the place that its id says, of those that the text has."""

    def forward(self, ids: Tensor) -> Tensor:
        table = self.positions(ids.shape[1])
        return self.head(self.hidden(ids) + F.embedding(ids % 3, table))[:, -1]


class TokensByPosition(Model):
    def forward(self, ids: Tensor) -> Tensor:
        return self.head(F.embedding(torch.arange(ids.shape[1]), self.hidden(ids)[0]))


class SumOfCopies(AllPositions):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids)[:, None].expand(-1, ids.shape[1], -1, -1).sum(1)


# What the message must name.
NOT_CAUSAL = {
    LooksAheadAtOneLength: "its value changes with the number of tokens: for 17",
    Bidirectional: "no mask keeps a token from attending to later ones",
    OneAhead: "the mask lets token 0 attend to token 1",
    NoMask: "no mask keeps a token from attending to later ones",
    WeakMask: "the mask lets token 0 attend to token 1",
    MeanOverTokens: "it computes over the tokens",
    TableThatChanges: "its value changes with the number of tokens",
    Convolution: "over 3 tokens whose operand has 0 entries before the first; stride 1, padding 1",
    PaddedOnBothSides: "look beyond the last token, and it does not cut them off",
    CutOffTooFew: "look beyond the last token, and it cuts out others than the tokens'",
    CutOffFirst: "look beyond the last token, and it cuts out others than the tokens'",
    CutOffBoth: "look beyond the last token, and it cuts out others than the tokens'",
    PaddedOneTooMany: "over 3 tokens whose operand has 3 entries before the first",
    PaddedBehind: "tokens are padded elsewhere than before the first",
    PaddedAlone: "tokens padded before the first, and no convolution of them",
    FirstToken: "picks a token other than the last",
    Dropout: "dropout in training mode",
    Backwards: "does not keep tokens apart, or in their order",
    LastAddedToAll: "what the last token gave would reach earlier ones",
    RowByLength: "its value changes with the number of tokens",
    TableTimesLength: "its value changes with the number of tokens",
    InterleavedTable: "its value changes with the number of tokens",
    PositionsByToken: "it picks among tokens or positions",
    TokensByPosition: "it picks among tokens or positions",
    SumOfCopies: "scores that were not made weights by a softmax over the keys",
}


class ByLength(Model):
    """A number computed from the number of tokens changes what is computed at one place."""

    def __init__(self, place: str, change: Callable[[Any, int], Tensor]) -> None:
        super().__init__()
        self.place = place
        self.change = change

    def changed(self, place: str, value: Tensor, n: int) -> Tensor:
        return self.change(value, n) if place == self.place else value

    def attend(self, q: Tensor, k: Tensor, v: Tensor, n: int) -> Tensor:
        v = self.changed("values", v, n)
        if self.place == "product":
            scores = self.change((q[0], k[0].transpose(1, 2)), n)[None]
        else:
            scores = self.changed("scores", q @ k.transpose(-2, -1), n)
        weights = F.softmax(scores.masked_fill(~_causal(n), float("-inf")), -1)
        return self.changed("weights", weights, n) @ v

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        return self.changed("logits", self.head(self.hidden(self.changed("ids", ids, n))), n)


# Place, what is done there, and the operator that the message must name.
BY_LENGTH: dict[str, tuple[str, Callable[[Any, int], Tensor], str]] = {
    "remainder of ids": ("ids", lambda ids, n: ids % n, "remainder.Scalar"),
    "compared": ("ids", lambda ids, n: ids * (ids < n), "lt.Scalar"),
    "times": ("values", lambda x, n: x * n, "mul.Tensor"),
    "over": ("values", lambda x, n: x / n, "div.Tensor"),
    "plus": ("values", lambda x, n: x + n * 0.1, "add.Tensor"),
    "power": ("values", lambda x, n: x**n, "pow.Tensor_Scalar"),
    "clamp": ("values", lambda x, n: x.clamp(max=n * 0.05), "clamp.default"),
    "alpha": ("values", lambda x, n: torch.add(x, x, alpha=n), "add.Tensor"),
    "fill": ("values", lambda x, n: x.masked_fill(x > 0, n), "masked_fill.Scalar"),
    "where": ("values", lambda x, n: torch.where(x > 0, x, n * 1.0), "where.ScalarOther"),
    "at least ten": ("values", lambda x, n: x * torch.sym_max(n, 10), "mul.Tensor"),
    "turned": ("values", lambda x, n: x.roll(n, 3), "roll.default"),
    "picked": ("values", lambda x, n: x + x[..., n % 4, None], "select.int"),
    "cut": ("values", lambda x, n: x + x.narrow(3, n % 4, 1), "narrow.default"),
    "scores times": ("scores", lambda x, n: x * (1 / n), "mul.Tensor"),
    "scores over": ("scores", lambda x, n: x / n, "div.Tensor"),
    "weights times": ("weights", lambda x, n: x * n, "mul.Tensor"),
    "alpha of a product": (
        "product",
        lambda x, n: torch.baddbmm(torch.zeros(1, 1, 1), *x, alpha=1 / n),
        "baddbmm.default",
    ),
    "logits of all": ("logits", lambda x, n: x * n, "mul.Tensor"),
}
