"""Writes NAME.pte, a program for training, and NAME.ptd, the weights it starts from, of each task.

python export_training.py
"""

from __future__ import annotations

from pathlib import Path

from tasks import TASKS
from torch.export import export
from torch.export.experimental import _export_forward_backward

from executorch.exir import ExecutorchBackendConfig, to_edge


def main() -> None:
    for name, task in TASKS.items():
        model, x, y = task()
        joint = _export_forward_backward(export(model, (x, y), strict=True))
        # Weights beside the program can be replaced by trained ones.
        config = ExecutorchBackendConfig(external_mutable_weights=True)
        program = to_edge(joint).to_executorch(config)
        program.save(f"{name}.pte")
        program.write_tensor_data_to_file(".")
        Path("_default_external_constant.ptd").rename(f"{name}.ptd")


if __name__ == "__main__":
    main()
