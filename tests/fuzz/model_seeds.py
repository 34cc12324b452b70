"""Write small programs whose instructions are fused when they are loaded, and one with a loop.

python -m tests.fuzz.model_seeds FOLDER

FOLDER is left as it is if it holds what these sources write.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.nn import functional as F

from executorch.exir import dynamic_steps, schema, to_edge
from executorch.kernels.optimized import fusion_images_test as images
from executorch.kernels.optimized import fusion_test as models
from tests.fuzz.operator_seeds import ROOT, add_kernel, is_current, stamp_of
from tests.ops.program import Builder

LENGTH, WIDTH = models.T, models.WIDTH


class Elementwise(nn.Module):
    """A chain of operators on each element, broadcast and of two types."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = torch.sigmoid(x * y + 0.5).clamp(0.1, 0.9)
        return torch.where(z > 0.5, z - y, z.exp() / (y.abs() + 1)).to(torch.float16) * 2


class Images(nn.Module):
    """Convolutions with what follows them, pools, an upsampling and a cat."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 2, 2, groups=2)
        self.up, self.norm = nn.ConvTranspose2d(8, 4, 3, 2, 1, 1), nn.GroupNorm(2, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self.a(x))
        y = F.silu(self.norm(self.b(y))) + y
        y = torch.cat([self.up(y), F.interpolate(y, scale_factor=2.0)], 1)
        return F.avg_pool2d(F.max_pool2d(y, 2), 2, ceil_mode=True).mean((2, 3))


class Sequence(nn.Module):
    """Convolutions of one dimension, a running sum, choices by index."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.rows = nn.Conv1d(4, 4, 3, 1, 1), nn.Embedding(7, 4)

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        y = self.conv(self.rows(at).transpose(1, 2) + x)
        best = y.topk(2, -1)
        return best.values, y.cumsum(-1).gather(-1, best.indices)


class Recurrent(nn.Module):
    """Loops over steps, each of which fusion makes one call."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 5, bidirectional=True), nn.GRU(10, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, (_, cells) = self.lstm(x)
        z, last = self.gru(y)
        return z.tanh() + 1, last, cells


def exported() -> Iterator[tuple[str, nn.Module, tuple[Tensor, ...], Any]]:
    length, batch = {1: Dim("t", max=LENGTH)}, {0: Dim("b", max=4)}
    rows = torch.randn(1, 5, WIDTH)
    yield "gpt", models.Gpt(), models.tokens(5), (length,)
    yield "block", models.Block(), (rows,), (length,)
    yield "grouped_queries", models.Grouped("expand"), (rows,), (length,)
    yield "half_block", models.Block().half(), (rows.half(),), (length,)
    yield "bert", models.Bert(), (rows, torch.ones(1, 5)), None
    yield "vit", images.Vit(), (torch.randn(2, 3, 16, 16),), None
    dim = {2: Dim("t", max=LENGTH - 1)}
    yield "triangle", models.Hand(), tuple(torch.randn(1, 2, 5, 4) for _ in range(3)), (dim,) * 3
    for act in (nn.ReLU6(), nn.SiLU()):
        name = f"convolutions_{type(act).__name__}"
        yield name, images.Convolutions(act), (torch.randn(2, 6, 9, 9),), (batch,)
    yield "elementwise", Elementwise(), (torch.randn(3, 40), torch.randn(40)), None
    image = {2: Dim("h", max=16), 3: Dim("w", max=16)}
    yield "images", Images(), (torch.randn(1, 3, 8, 8),), None
    yield (
        "wide_images",
        nn.Conv2d(3, 8, 3, 1, 1).half(),
        (torch.randn(1, 3, 8, 8).half(),),
        (image,),
    )
    indices = torch.randint(0, 7, (2, 6))
    yield "sequence", Sequence(), (torch.randn(2, 4, 6), indices), None
    with dynamic_steps():  # while the caller exports
        yield "recurrent", Recurrent(), (torch.randn(5, 2, 3),), ({0: Dim("steps", max=9)},)


def loop() -> bytes:
    """Rows copied one after the other until a counter says so, with moves and a free."""
    builder = Builder()
    rows = builder.tensor(torch.ones(4, 3), buffer=0, planned=True, slack=4)
    row, other = builder.argument(torch.ones(3)), builder.argument(torch.zeros(3))
    held = builder.tensor(torch.ones(3), buffer=0, planned=True)
    at, one, end, flag = (builder.argument(value) for value in (0, 1, 4, False))
    builder.instructions.append(schema.Instruction(schema.MoveCall(row, held)))
    add_kernel(builder, "executorch_prim::et_copy_index.tensor", [rows, held, at])
    add_kernel(builder, "executorch_prim::add.Scalar", [at, one, at])
    add_kernel(builder, "executorch_prim::ge.Scalar", [at, end, flag])
    builder.instructions.append(schema.Instruction(schema.MoveCall(other, held)))
    builder.instructions.append(schema.Instruction(schema.JumpFalseCall(flag, 1)))
    builder.instructions.append(schema.Instruction(schema.FreeCall(held)))
    builder.outputs.append(rows)
    return builder.program()


def write(folder: Path) -> None:
    warnings.simplefilter("ignore")
    wanted = stamp_of(
        Path(__file__),
        Path(images.__file__),
        Path(models.__file__),
        ROOT / "tests/fuzz/operator_seeds.py",
    )
    if is_current(folder, wanted):
        return
    torch.manual_seed(0)
    (folder / "model_loop.pte").write_bytes(loop())
    for name, module, inputs, shapes in exported():
        with torch.no_grad():
            program = export(module.eval(), inputs, dynamic_shapes=shapes, strict=False)
        buffer = to_edge(program).to_executorch().buffer
        (folder / f"model_{name}.pte").write_bytes(bytes(buffer))
    print(f"model seeds: {len(list(folder.glob('*.pte')))} programs")
    (folder / "stamp.txt").write_text(wanted)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
