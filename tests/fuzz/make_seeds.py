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


def main(folder: Path) -> None:
    torch.manual_seed(0)
    dense = export(Dense(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("n", max=4)},))
    programs = {
        "dense": to_edge(dense, constant_methods={"size": 4, "name": "dense"}),
        "counter": to_edge(export(Counter(), (torch.ones(1),))),
        "choice": to_edge(export(Choice(), (torch.ones(2),))),
    }
    for name, program in programs.items():
        program.to_executorch(ExecutorchBackendConfig()).save(str(folder / f"{name}.pte"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
