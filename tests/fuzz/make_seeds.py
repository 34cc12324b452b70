"""Write a few small programs that together hold every kind of value and instruction.

python tests/fuzz/make_seeds.py FOLDER
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.exir import ExecutorchBackendConfig, to_edge


class Dense(nn.Module):
    """Constants, a dynamic dimension, a list argument, a symbolic integer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.layer(x), x], dim=1).reshape(x.shape[0] * 5)


class Counter(nn.Module):
    """A mutable buffer with an initial value."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor([7.0]))

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        return x * self.count


class Choice(nn.Module):
    """Jumps and moves."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,))


class Grouped(nn.Module):
    """Attention of two heads that share a key, a norm and a product: fused when it is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        q = self.q(h).view(1, -1, 2, 4).transpose(1, 2)
        k, v = (
            part.view(1, -1, 1, 4).transpose(1, 2).repeat_interleave(2, 1)
            for part in self.kv(h).chunk(2, -1)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + y.transpose(1, 2).reshape(1, -1, 8)


def main(folder: Path) -> None:
    torch.manual_seed(0)
    dense = export(Dense(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("n", max=4)},))
    x = torch.randn(1, 3, 8)
    grouped = export(Grouped(), (x,), dynamic_shapes=({1: Dim("t", min=2, max=8)},))
    programs = {
        "dense": to_edge(dense, constant_methods={"size": 4, "name": "dense"}),
        "counter": to_edge(export(Counter(), (torch.ones(1),))),
        "grouped": to_edge(grouped),
        "choice": to_edge(export(Choice(), (torch.ones(2),))),
    }
    for name, program in programs.items():
        program.to_executorch(ExecutorchBackendConfig()).save(str(folder / f"{name}.pte"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
