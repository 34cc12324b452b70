"""Decoders with random weights, as functions of tokens alone and with keys and values as arguments.
Needs torch only, as every side imports it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Past = list[Tensor]  # key and value of each layer, [1, kv_heads, tokens, head]


@dataclass(frozen=True)
class Shape:
    """`rotary`: RMS norm, gated SiLU and rotary positions; else layer norm, GELU, learned ones.
    `experts`: of each layer, of which a token picks `picked`; 0 for one that all tokens use."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    rotary: bool
    block: int = 1024
    experts: int = 0
    picked: int = 0

    @property
    def head(self) -> int:
        return self.width // self.heads


GPT2 = Shape("gpt2", 12, 768, 12, 12, 3072, 50257, False)
LLAMA = Shape("llama-500m", 16, 1536, 24, 8, 4096, 32000, True)
MIXTURE = Shape("moe-500m", 9, 1024, 16, 4, 2048, 32000, True, experts=8, picked=2)
SHAPES = {shape.name: shape for shape in (GPT2, LLAMA, MIXTURE)}
BITS = {"fp32": 32.0, "int8": 8.0, "int4": 4.5}  # of a weight; 16 more for 32 weights of int4


class FeedForward(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.gate = nn.Linear(s.width, s.hidden, bias=False) if s.rotary else None
        self.up = nn.Linear(s.width, s.hidden, bias=not s.rotary)
        self.down = nn.Linear(s.hidden, s.width, bias=not s.rotary)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(F.gelu(self.up(x)))
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Mixture(nn.Module):
    """Each token is the sum of the experts that it picks, weighted by their probabilities."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.picked = s.picked
        self.router = nn.Linear(s.width, s.experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(s) for _ in range(s.experts))

    def forward(self, x: Tensor) -> Tensor:
        weights, picked = self.router(x).softmax(-1).topk(self.picked, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        is_picked = picked[..., None, :] == torch.arange(len(self.experts))[:, None]
        shares = torch.where(is_picked, weights[..., None, :], 0.0).sum(-1)  # [1, t, experts]
        total = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            total = total + expert(x) * shares[..., i : i + 1]
        return total


class Layer(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        norm = nn.RMSNorm if s.rotary else nn.LayerNorm
        self.norm_1, self.norm_2 = norm(s.width), norm(s.width)
        kv = s.kv_heads * s.head
        self.widths = [s.width, kv, kv]
        self.qkv = nn.Linear(s.width, sum(self.widths), bias=not s.rotary)
        self.out = nn.Linear(s.width, s.width, bias=not s.rotary)
        self.feed = Mixture(s) if s.experts else FeedForward(s)

    def forward(
        self, x: Tensor, angle: Tensor | None, mask: Tensor | None, past: Past | None
    ) -> tuple[Tensor, Past]:
        s = self.s
        parts = self.qkv(self.norm_1(x)).split(self.widths, -1)
        q, k, v = (t.view(1, t.shape[1], -1, s.head).transpose(1, 2) for t in parts)
        if angle is not None:
            q, k = turn(q, angle), turn(k, angle)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        new = [k, v]
        if s.kv_heads != s.heads:
            k, v = (t.repeat_interleave(s.heads // s.kv_heads, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.out(y.transpose(1, 2).reshape(1, -1, s.width))
        return x + self.feed(self.norm_2(x)), new


def turn(x: Tensor, angle: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    rotated = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * angle.cos() + rotated * angle.sin()


class Decoder(nn.Module):
    """int64 [1, t] to the logits after the last token, [1, 1, vocabulary]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.s = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.position = None if shape.rotary else nn.Embedding(shape.block, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = (nn.RMSNorm if shape.rotary else nn.LayerNorm)(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def start(self, ids: Tensor, at: Tensor) -> tuple[Tensor, Tensor | None]:
        """The embedded tokens at positions `at`, and their angles."""
        x = self.embedding(ids)
        if self.position is not None:
            return x + self.position(at), None
        frequency = 1.0 / (10000 ** (torch.arange(0, self.s.head, 2) / self.s.head))
        angle = torch.outer(at.float(), frequency)
        return x, torch.cat([angle, angle], -1)

    def forward(self, ids: Tensor) -> Tensor:
        x, angle = self.start(ids, torch.arange(ids.shape[1]))
        for layer in self.layers:
            x, _ = layer(x, angle, None, None)
        return self.head(self.norm(x[:, [-1]]))


class WithPast(nn.Module):
    """(new tokens, past of each layer) to (logits after the last, past with the new ones)."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, past: Past) -> tuple[Tensor, Past]:
        n, seen = ids.shape[1], past[0].shape[2]
        at = torch.arange(n) + seen
        mask = torch.arange(seen + n)[None, :] <= at[:, None]
        x, angle = self.decoder.start(ids, at)
        new: Past = []
        for i, layer in enumerate(self.decoder.layers):
            x, kept = layer(x, angle, mask, past[2 * i : 2 * i + 2])
            new += kept
        return self.decoder.head(self.decoder.norm(x[:, [-1]])), new


def decoder(shape: Shape) -> Decoder:
    """The same weights wherever it is called."""
    torch.manual_seed(0)
    return Decoder(shape).eval()


def no_past(shape: Shape) -> Past:
    return [torch.zeros(1, shape.kv_heads, 0, shape.head) for _ in range(2 * shape.layers)]


def tokens(shape: Shape, n: int, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, shape.vocabulary, (1, n), generator=g)


def check_tokens(shape: Shape) -> Tensor:
    """The text after which the sides' logits are compared."""
    return tokens(shape, 24, seed=1)


def rounded(model: Decoder, form: str) -> Decoder:
    """`model` with every matrix but those of routers rounded to nearest: int8 with a scale for each
    row, int4 for each 32 weights, symmetric. Changes `model`."""
    if form == "fp32":
        return model
    largest = 127 if form == "int8" else 7
    for name, p in model.named_parameters():
        if p.dim() < 2 or is_router(name):
            continue
        groups = p.data.view(p.shape[0], -1, p.shape[1] if form == "int8" else 32)
        scale = groups.abs().amax(-1, keepdim=True) / largest
        p.data = ((groups / scale).round() * scale).view(p.shape)
    return model


def is_router(name: str) -> bool:
    """Whether a parameter, or the layer that has it, picks experts: in float32 in every format."""
    return ".router" in name


def cache_type(form: str) -> torch.dtype:
    """Of keys and values, here and in llama.cpp, whose default the second is."""
    return torch.float32 if form == "fp32" else torch.float16


def least_bytes(shape: Shape, form: str, context: int) -> float:
    """Read for one token: every weight of a product once, of experts those that it picks, and keys
    and values."""
    kv = shape.kv_heads * shape.head
    gated = 3 if shape.rotary else 2
    layer = 2 * shape.width + 2 * kv + gated * shape.hidden * max(shape.picked, 1)
    weights = shape.width * (shape.layers * layer + shape.vocabulary)
    bits = weights * BITS[form] + shape.layers * shape.width * shape.experts * 32
    return bits / 8 + shape.layers * context * 2 * kv * cache_type(form).itemsize
