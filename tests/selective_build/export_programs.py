"""Write the programs of this test into a folder: python export_programs.py FOLDER"""

import sys
from pathlib import Path

import torch

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge, to_edge_transform_and_lower

torch.library.define("selective::scale", "(Tensor x, float factor) -> Tensor")
torch.library.define(
    "selective::scale.out", "(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)"
)


@torch.library.register_fake("selective::scale")
def _(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


class Selected(torch.nn.Module):
    """Calls the custom operator so that both its kernels run, and two of ours."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple:
        scaled = [torch.ops.selective.scale(t, 3.0) for t in (x, y, z)]
        return (*scaled, torch.softmax(x + x, -1))


class Softmax(torch.nn.Module):
    """What Selected calls of ours, for other element types than there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + x, -1)


class Other(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, 0)


def main(folder: Path) -> None:
    selected = (torch.ones(2, 3), torch.ones(2, 3, dtype=torch.double), torch.ones(4))
    for name, model, inputs in (
        ("selected", Selected(), selected),
        ("halves", Softmax(), (torch.ones(2, 4, dtype=torch.half),)),
        ("other", Other(), (torch.ones(3),)),
    ):
        program = to_edge(torch.export.export(model, inputs)).to_executorch()
        program.save(str(folder / f"{name}.pte"))
    exported = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    lowered.to_executorch().save(str(folder / "delegated.pte"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
