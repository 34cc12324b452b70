"""myop::custom_linear in PyTorch, and the rewrite that puts it in place of nn.Linear."""

from __future__ import annotations

import torch
from torch import nn


class CustomLinear(nn.Module):
    """nn.Linear computed by myop::custom_linear; the library must be loaded when it runs."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        linear = nn.Linear(in_features, out_features, bias)
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.myop.custom_linear(self.weight, x, self.bias)


def replace_linear_with_custom_linear(module: nn.Module) -> None:
    """Replace every nn.Linear below `module`, keeping its parameters."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            custom = CustomLinear(child.in_features, child.out_features, child.bias is not None)
            custom.load_state_dict(child.state_dict())
            setattr(module, name, custom)
        else:
            replace_linear_with_custom_linear(child)
