"""Attention over the tokens so far, or over those of an encoder."""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn

from executorch.extension.llm.modules._replace import replace_modules
from executorch.extension.llm.modules.kv_cache import KVCache

log = logging.getLogger(__name__)


class MultiHeadAttention(nn.Module):
    """torchtune's `MultiHeadAttention`, with its parameters.

    q [b, s, heads, dim] come from x, k and v [b, t, kv_heads, dim] from y, each with its
    projection, `pos_embeddings` (called with input_pos) and norm; kv_heads divide heads. Without a
    mask the attention is causal if `is_causal`, but not over a cache, of which all is visible.

    With a cache, from `setup_cache` or given, keys and values of y are appended to it, and all of
    it is read. Where y is None, or not a number everywhere, nothing is appended: the choice is part
    of a program, as a `torch.cond`.
    """

    def __init__(
        self,
        *,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        q_proj: nn.Module,
        k_proj: nn.Module,
        v_proj: nn.Module,
        output_proj: nn.Module,
        pos_embeddings: nn.Module | None = None,
        q_norm: nn.Module | None = None,
        k_norm: nn.Module | None = None,
        kv_cache: KVCache | None = None,
        max_seq_len: int = 4096,
        is_causal: bool = True,
        attn_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if num_heads % num_kv_heads:
            raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} heads do not divide embed_dim {embed_dim}")
        if not 0 <= attn_dropout <= 1:
            raise ValueError(f"attn_dropout is {attn_dropout}; 0 to 1 is expected")
        if (q_norm is None) != (k_norm is None):
            raise ValueError("q_norm and k_norm are given together, or neither")
        self.embed_dim, self.head_dim = embed_dim, head_dim
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.max_seq_len, self.is_causal, self.attn_dropout = max_seq_len, is_causal, attn_dropout
        self.kv_cache = kv_cache
        self.q_proj, self.k_proj, self.v_proj = q_proj, k_proj, v_proj
        self.output_proj, self.pos_embeddings = output_proj, pos_embeddings
        self.q_norm, self.k_norm = q_norm, k_norm
        self._sdpa = SDPA(num_kv_heads, num_heads, head_dim, attn_dropout, is_causal, kv_cache)
        self.cache_enabled = False

    def setup_cache(self, batch_size: int, dtype: torch.dtype, max_seq_len: int) -> None:
        """Create the cache unless there is one."""
        if self.kv_cache is not None:
            log.warning("there is a cache of keys and values already; it stays")
            return
        self.kv_cache = KVCache(
            batch_size, max_seq_len, self.num_kv_heads, self.head_dim, dtype, transpose_cache=False
        )
        self._sdpa.kv_cache = self.kv_cache
        self.cache_enabled = True

    def reset_cache(self) -> None:
        if self.kv_cache is None:
            raise RuntimeError("there is no cache; call setup_cache() first")
        self.kv_cache.reset()

    def forward(
        self,
        x: Tensor,
        y: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        input_pos: Tensor | None = None,
    ) -> Tensor:
        """x [b, s, embed_dim], y [b, t, embed_dim]; mask [b, s, keys], true for what is visible;
        input_pos [b, s], the tokens' positions. Gives [b, s, embed_dim]."""
        batch, tokens, _ = x.shape
        q = self.q_proj(x).view(batch, tokens, self.num_heads, self.head_dim)
        q = self._placed(q, self.q_norm, input_pos)
        if self.kv_cache is not None:
            k, v = self._cached(y, input_pos)
        elif y is None:
            raise AssertionError("y is expected where there is no cache")
        else:
            k, v = self._projected(y, input_pos)
        return self.output_proj(self._sdpa(q, k, v, batch, tokens, mask=mask))  # type: ignore

    def _placed(self, x: Tensor, norm: nn.Module | None, input_pos: Tensor | None) -> Tensor:
        if self.pos_embeddings is not None:
            x = self.pos_embeddings(x, input_pos=input_pos)
        return x if norm is None else norm(x)

    def _projected(self, y: Tensor, input_pos: Tensor | None) -> tuple[Tensor, Tensor]:
        batch, tokens, _ = y.shape
        k = self.k_proj(y).view(batch, tokens, -1, self.head_dim)
        v = self.v_proj(y).view(batch, tokens, -1, self.head_dim)
        return self._placed(k, self.k_norm, input_pos), v

    def _cached(self, y: Tensor | None, input_pos: Tensor | None) -> tuple[Tensor, Tensor]:
        cache = self.kv_cache
        assert cache is not None
        if y is None:
            return cache.k_cache, cache.v_cache

        def keep(y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return cache.k_cache.clone(), cache.v_cache.clone(), cache.kv_cache_pos.clone()

        def append(y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return cache.updated(*self._projected(y, input_pos))

        k, v, positions = torch.cond(torch.isnan(y).all(), keep, append, (y,))
        cache.k_cache.copy_(k)
        cache.v_cache.copy_(v)
        cache.kv_cache_pos.copy_(positions)
        return k, v


class SDPA(nn.Module):
    """The computation on q, k and v in a `MultiHeadAttention`; another module may replace it."""

    def __init__(
        self,
        num_kv_heads: int,
        num_heads: int,
        head_dim: int,
        attn_dropout: float,
        is_causal: bool,
        kv_cache: KVCache | None,
    ) -> None:
        super().__init__()
        self.num_kv_heads, self.num_heads, self.head_dim = num_kv_heads, num_heads, head_dim
        self.attn_dropout, self.is_causal = attn_dropout, is_causal
        self.kv_cache = kv_cache

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bsz: int,
        seq_len: int,
        mask: Tensor | None = None,
    ) -> Tensor:
        """q [bsz, seq_len, heads, dim], k and v [bsz, keys, kv_heads, dim]; [bsz, seq_len, heads *
        dim]."""
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if self.num_heads != self.num_kv_heads:
            k, v = (t.repeat_interleave(self.num_heads // self.num_kv_heads, 1) for t in (k, v))
        output = nn.functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=None if mask is None else mask[:, None],
            dropout_p=self.attn_dropout if self.training else 0.0,
            is_causal=self.kv_cache is None and mask is None and self.is_causal,
        )
        return output.transpose(1, 2).reshape(bsz, seq_len, -1)


def replace_mha_with_inference_mha(module: nn.Module) -> nn.Module:
    """`module` with torchtune's attention below it replaced by this one, of the same parts. A cache
    that was there is not taken over: call `setup_cache` again."""
    from torchtune.modules.attention import (  # type: ignore[import-not-found]
        MultiHeadAttention as TuneAttention,
    )

    parts = ("embed_dim", "num_heads", "num_kv_heads", "head_dim", "q_proj", "k_proj", "v_proj")
    more = ("output_proj", "pos_embeddings", "q_norm", "k_norm", "max_seq_len", "is_causal")

    def twin(old: nn.Module) -> nn.Module:
        given = {part: getattr(old, part) for part in (*parts, *more, "attn_dropout")}
        return MultiHeadAttention(**given)

    return replace_modules(module, TuneAttention, twin)
