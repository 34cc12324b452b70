"""Mixtures of experts of `transformers` as products that a program has.

`transformers` sorts the tokens by expert and multiplies groups of them, by an operator of its own
that no runtime has. Here every expert computes every token, and counts where it was picked: no
token depends on others, and each expert is two linear layers, which can be quantized and lowered.
The runtime computes an expert's rows where it was picked, and reads no weights of others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class EveryExpert(nn.Module):
    """(tokens [n, width], picked int64 [n, k], weights [n, k]) -> [n, width], as an experts module
    of `transformers`, whose stacked weights it takes over."""

    def __init__(self, experts: Any) -> None:
        super().__init__()
        up = "gate_up_proj" if experts.has_gate else "up_proj"
        self.up, self.down = _linears(experts, up), _linears(experts, "down_proj")
        self.rest = experts  # its activation, and what may follow

    def forward(self, tokens: Tensor, picked: Tensor, weights: Tensor) -> Tensor:
        # In front of the layers, which then need not compute what their share is zero for.
        is_picked = picked[:, None] == torch.arange(len(self.up))[:, None]
        shares = torch.where(is_picked, weights[:, None], 0.0).sum(-1)  # [n, experts]
        total = torch.zeros_like(tokens)
        for i, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            y = up(tokens)
            y = down(self.rest._apply_gate(y) if self.rest.has_gate else self.rest.act_fn(y))
            if self.rest.has_post_expert_norm:
                y = self.rest.post_expert_norm(y)
            total = total + (y * shares[:, i : i + 1]).to(total.dtype)
        return total


def replace_experts(model: nn.Module) -> None:
    """Replace all experts modules in `model` whose weights are stacked floating-point numbers."""
    found = [(n, m) for n, m in model.named_modules() if _is_experts(m)]
    for name, module in found:
        model.set_submodule(name, EveryExpert(module))


def _is_experts(module: nn.Module) -> bool:
    """Whether it declares the layout of its weights, as `use_experts_implementation` has it."""
    if not all(hasattr(module, a) for a in ("has_gate", "has_bias", "is_transposed", "config")):
        return False
    up = getattr(module, "gate_up_proj" if module.has_gate else "up_proj", None)
    return isinstance(up, nn.Parameter) and up.dim() == 3 and up.is_floating_point()


def _linears(experts: Any, name: str) -> nn.ModuleList:
    """A linear layer for each expert; the weights lie where they lay."""
    stacked = getattr(experts, name).detach()
    bias = getattr(experts, f"{name}_bias").detach() if experts.has_bias else None
    delattr(experts, name)
    layers = nn.ModuleList()
    for i, weight in enumerate(stacked.mT if experts.is_transposed else stacked):
        results, width = weight.shape
        layer = nn.Linear(width, results, bias=bias is not None, device="meta")
        layer.weight = nn.Parameter(weight, requires_grad=False)
        if bias is not None:
            layer.bias = nn.Parameter(bias[i], requires_grad=False)
        layers.append(layer)
    if bias is not None:
        delattr(experts, f"{name}_bias")
    return layers
