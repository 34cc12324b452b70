"""A language model of one layer, for tests of whatever takes any."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class TinyText(nn.Module):
    """tokens int64 [b, t <= 40] -> logits [b, t, 60]."""

    block_size = 40

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(60, 16), nn.Embedding(40, 16)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, 60)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.words(idx) + self.places(torch.arange(idx.shape[1]))
        q, k, v = (y[:, None] for y in self.qkv(x).split(16, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]
        return self.head(x + y)  # type: ignore[no-any-return]
