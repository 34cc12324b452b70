"""A GPT in one file, with the interface of the well-known nanoGPT model.

    model = GPT.from_file("nanogpt.safetensors")     # the weights shipped beside this file
    model = GPT.from_pretrained("gpt2")              # OpenAI's weights, needs `transformers`
    logits, loss = model(idx)                        # idx int64 [batch, tokens]

Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 1024  # longest sequence, in tokens
    vocab_size: int = 50257
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768  # a multiple of n_head
    dropout: float = 0.0
    bias: bool = True  # in Linear and LayerNorm, as GPT-2 has it


class SelfAttention(nn.Module):
    """Causal multi-head attention; x float [b, t, n_embd] to the same shape."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.dropout = config.dropout
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (
            y.view(b, t, self.n_head, d // self.n_head).transpose(1, 2)  # [b, h, t, d/h]
            for y in self.c_attn(x).split(d, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        y = self.c_proj(y.transpose(1, 2).reshape(b, t, d))
        return F.dropout(y, self.dropout, self.training)


class MLP(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        y = self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))
        return F.dropout(y, self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = SelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        if config.n_embd % config.n_head:
            raise ValueError(
                f"GPTConfig: n_embd {config.n_embd} is no multiple of n_head {config.n_head}"
            )
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "h": nn.ModuleList(Block(config) for _ in range(config.n_layer)),
                "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight  # one table reads and writes tokens
        self.apply(self._init_weights)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):  # two residual additions a layer keep unit variance
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * config.n_layer))

    @staticmethod
    def _init_weights(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Predict the token after each of `idx`.

        idx      int64 [b, t], 1 <= t <= block_size
        targets  int64 [b, t] or None
        Returns (logits, loss): with targets, logits [b, t, vocab] and the mean cross entropy in
        nats; without, the logits of the last position only, [b, 1, vocab], and None.
        """
        t = idx.shape[1]
        if t > self.config.block_size:
            raise ValueError(f"GPT: {t} tokens, but block_size is {self.config.block_size}")
        positions = torch.arange(t, dtype=torch.long, device=idx.device)
        x = self.transformer["wte"](idx) + self.transformer["wpe"](positions)
        x = F.dropout(x, self.config.dropout, self.training)
        for block in self.transformer["h"]:
            x = block(x)
        x = self.transformer["ln_f"](x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(
        self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None
    ) -> Tensor:
        """Append `max_new_tokens` sampled tokens to idx, int64 [b, t]."""
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.config.block_size :])
            logits = logits[:, -1] / temperature
            if top_k is not None:
                kth = torch.topk(logits, min(top_k, logits.shape[-1])).values[:, -1:]
                logits = logits.masked_fill(logits < kth, -math.inf)
            token = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            idx = torch.cat((idx, token), dim=1)
        return idx

    def save(self, path: str | Path) -> None:
        """Write the weights as float16 safetensors, the configuration in the file's metadata."""
        from safetensors.torch import save_file

        state = {k: v.half().contiguous() for k, v in self.state_dict().items()}
        del state["lm_head.weight"]  # tied to wte
        save_file(state, str(path), metadata={"config": json.dumps(asdict(self.config))})

    @classmethod
    def from_file(cls, path: str | Path) -> GPT:
        """Load what `save` wrote, as float32 and in evaluation mode."""
        from safetensors import safe_open

        with safe_open(str(path), framework="pt") as f:
            config = GPTConfig(**json.loads(f.metadata()["config"]))
            state = {k: f.get_tensor(k).float() for k in f.keys()}  # noqa: SIM118 (no iterator)
        state["lm_head.weight"] = state["transformer.wte.weight"]
        model = cls(config)
        model.load_state_dict(state)
        return model.eval()

    @classmethod
    def from_pretrained(cls, model_type: str) -> GPT:
        """Load GPT-2 weights through `transformers`: a hub name or a folder on disk."""
        try:
            from transformers import GPT2LMHeadModel
        except ImportError as e:
            raise ImportError(
                f"GPT.from_pretrained({model_type!r}) needs transformers: pip install transformers."
                " Without it, GPT.from_file loads the weights shipped beside model.py."
            ) from e
        source = GPT2LMHeadModel.from_pretrained(model_type)
        hf = source.config
        model = cls(GPTConfig(hf.n_positions, hf.vocab_size, hf.n_layer, hf.n_head, hf.n_embd))
        transposed = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # stored as [in, out] there
        with torch.no_grad():
            target = model.state_dict()
            for name, value in source.state_dict().items():
                if name in target:
                    target[name].copy_(value.t() if name.endswith(transposed) else value)
        return model.eval()
