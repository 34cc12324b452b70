"""Trains a task from NAME.pte and NAME.ptd, and writes what it learnt to NAME-trained.ptd.

python train.py NAME [STEPS]
"""

from __future__ import annotations

import sys

from tasks import TASKS

from executorch.extension.pybindings.portable_lib import _load_for_executorch
from executorch.extension.training import TrainingModule, get_sgd_optimizer, save_ptd


def main(name: str, steps: str = "60") -> None:
    _, x, y = TASKS[name]()
    module = TrainingModule(_load_for_executorch(f"{name}.pte", f"{name}.ptd"))
    optimizer = None
    for step in range(int(steps)):
        loss, guesses = module.forward_backward("forward", [x, y])
        print(f"{step} loss {loss.item():.6f} right {int((guesses == y).sum())} of {len(y)}")
        if optimizer is None:
            optimizer = get_sgd_optimizer(module.named_parameters(), lr=0.2, momentum=0.9)
        optimizer.step(module.named_gradients())
    save_ptd(f"{name}-trained.ptd", module.named_parameters())


if __name__ == "__main__":
    main(*sys.argv[1:])
