"""What is learnt: each task is a network with its loss, and one batch that shows all there is.

xor     2 floats -> whether one of them, and not both, is 1
bars    an image of 8 by 8 with one bar -> whether the bar is a column
"""

from __future__ import annotations

import torch
from torch import nn


class Classifier(nn.Module):
    """(inputs, classes) -> the loss of a network's guesses, and the guesses."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.net(x)
        return nn.functional.cross_entropy(scores, y), scores.detach().argmax(dim=1)


def xor() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return Classifier(net), x, torch.tensor([0, 1, 1, 0])


def bars() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    x = torch.zeros(16, 1, 8, 8)
    for place in range(8):
        x[2 * place, 0, place, :] = 1
        x[2 * place + 1, 0, :, place] = 1
    return Classifier(nn.Sequential(*layers, nn.Linear(64, 2))), x, torch.arange(16) % 2


TASKS = {"xor": xor, "bars": bars}
