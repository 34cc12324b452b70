"""Small models in the forms that quantization finds difficult."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Convolutions(nn.Module):
    """Every statically quantized operator: x float [b, 3, 16, 16] to [b, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.classes = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm(self.conv(x)))
        y = F.relu6(self.depthwise(y) + y) * 0.5
        y = torch.cat([F.max_pool2d(self.up(y), 2), y], 1)
        return self.classes(y.mean((2, 3)))


class Encoder(nn.Module):
    """A transformer layer in the manner of BERT: integer masks, position indices in a buffer.

    ids, mask  int64 [b, t]; mask 1 where there is a token, else 0.  Result float [b, t, d].
    """

    def __init__(self, d: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(50, d), nn.Embedding(64, d)
        self.norm = nn.LayerNorm(d)
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.register_buffer("position_ids", torch.arange(64)[None])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        b, t = ids.shape
        positions = self.position_ids[:, :t] + 1 - 1
        x = self.norm(self.words(ids) + self.places(positions))
        hidden = 1.0 - mask[:, None, None, :].to(torch.float32)
        hidden = hidden * torch.finfo(torch.float32).min
        q, k, v = (
            each(x).view(b, t, self.heads, -1).transpose(1, 2) for each in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + hidden
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(x)))


def image() -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, 16, 16),)


def sentence(length: int = 7) -> tuple[Tensor, Tensor]:
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length // 2 :] = 0
    return torch.randint(0, 50, (2, length)), mask


def any_length() -> tuple[dict[int, torch.export.Dim], ...]:
    tokens = torch.export.Dim("tokens", max=60)
    return {1: tokens}, {1: tokens}
