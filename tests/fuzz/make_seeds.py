"""Write a few small programs that together hold every kind of value and instruction.

python tests/fuzz/make_seeds.py FOLDER
"""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.backends.example.example_backend import ExamplePartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.backend.test.backend_with_compiler_demo import (
    BackendWithCompilerDemo,  # noqa: F401  (found by name)
)
from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo


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


class Image(nn.Module):
    """Every form that a delegated node has: windows, lists, several inputs, bounds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(2, 4, 3, 2, 1), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.max_pool2d(nn.functional.relu(self.conv(x)), 2)
        y = torch.cat([y, nn.functional.leaky_relu(y[:, :2]), y[:, 2:] * 2], 1)[:, 1:5]
        return torch.softmax(self.last(y.mean((2, 3))), -1)


class Channels(nn.Module):
    """Convolutions of each channel by itself, sums of images, products with several matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.each = nn.Conv2d(2, 16, 1), nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.matrices = nn.Parameter(torch.randn(2, 6, 3))

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.hardtanh(self.wide(x), 0.0, 6.0)
        y = y + self.each(y)
        return torch.bmm(y.reshape(2, -1, 6), self.matrices)


class Sums(nn.Module):
    """What the demo backends run."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return (torch.mm(x, self.w) + x) - x


def in_groups(module: nn.Module) -> nn.Module:
    """Weights of 4 bits in groups of 32, activations quantized per row."""
    from torchao.quantization import quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig

    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    quantize_(module, config)
    return module


def quantized(module: nn.Module, inputs: tuple[Tensor, ...], is_dynamic: bool) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    captured = export(module.eval(), inputs).module()
    prepared = prepare_pt2e(captured, XNNPACKQuantizer().set_global(config))
    prepared(*inputs)
    return convert_pt2e(prepared)


def delegated(module: nn.Module, inputs: tuple[Tensor, ...], by=None, shapes=None):
    program = export(module, inputs, dynamic_shapes=shapes)
    return to_edge_transform_and_lower(program, partitioner=[by or XnnpackPartitioner()])


def main(folder: Path) -> None:
    torch.manual_seed(0)
    dense = export(Dense(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("n", max=4)},))
    x = torch.randn(1, 3, 8)
    grouped = export(Grouped(), (x,), dynamic_shapes=({1: Dim("t", min=2, max=8)},))
    lengths = ({1: Dim("length", min=2, max=8)},)
    image, rows = (torch.randn(1, 2, 6, 6),), (torch.randn(2, 3),)
    programs = {
        "dense": to_edge(dense, constant_methods={"size": 4, "name": "dense"}),
        "counter": to_edge(export(Counter(), (torch.ones(1),))),
        "grouped": to_edge(grouped),
        "choice": to_edge(export(Choice(), (torch.ones(2),))),
        "delegated": delegated(Image(), image),
        "delegated_integers": delegated(quantized(Image(), image, False), image),
        "delegated_channels": delegated(quantized(Channels(), image, False), image),
        "delegated_matrices": delegated(quantized(Channels(), image, True), image),
        "delegated_rows": delegated(quantized(nn.Linear(3, 2), rows, True), rows),
        "delegated_groups": delegated(in_groups(nn.Linear(64, 4)), (torch.randn(2, 64),)),
        "delegated_attention": delegated(Grouped(), (x,), shapes=lengths),
        "delegated_halves": delegated(Image().half(), (image[0].half(),)),
        "example": delegated(Sums(), (torch.randn(3, 3),), ExamplePartitioner()),
        "demo": delegated(Sums(), (torch.randn(3, 3),), AddMulPartitionerDemo()),
    }
    for name, program in programs.items():
        program.to_executorch(ExecutorchBackendConfig()).save(str(folder / f"{name}.pte"))
    save_with_external_data(to_edge(dense), folder / "external")


def save_with_external_data(program: EdgeProgramManager, path: Path) -> None:
    """A program whose constants are in a file beside it."""
    lowered = program.to_executorch(ExecutorchBackendConfig(external_constants=True))
    lowered.save(str(path.with_suffix(".pte")))
    with tempfile.TemporaryDirectory() as folder:
        lowered.write_tensor_data_to_file(folder)
        (data,) = Path(folder).iterdir()
        path.with_suffix(".ptd").write_bytes(data.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
