from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from executorch.exir.passes.compact_quantized_weights import CompactQuantizedWeights
from executorch.exir.passes.lower_torchao_quantization import quantized_operators
from executorch.exir.program._decompose import decompose
from executorch.exir.testing import targets

quantized = quantized_operators()


class Tied(nn.Module):
    """A table that is looked up, and quantized for a product."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))
        self.register_buffer("scales", torch.rand(6) + 0.1)
        self.register_buffer("zeros", torch.zeros(6, dtype=torch.int64))

    def forward(self, i: Tensor) -> Tensor:
        how: Any = (self.scales, self.zeros, 0, -127, 127, torch.int8)
        q = quantized.quantize_per_channel(self.weight, *how)
        w = quantized.dequantize_per_channel(q, *how)
        return nn.functional.embedding(i, self.weight) @ w.T


class Table(nn.Module):
    def __init__(self, low: int, high: int, zero: int = 0) -> None:
        super().__init__()
        self.register_buffer("table", torch.randint(low, high + 1, (6, 4), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(6, 2) + 0.1)
        self.register_buffer("zeros", torch.full((6, 2), zero))
        self.range = low, high

    def forward(self, i: Tensor) -> Tensor:
        how: Any = (self.scales, self.zeros, *self.range, torch.int8, 2, torch.float32)
        table = quantized.dequantize_per_channel_group(self.table, *how)
        return nn.functional.embedding(i, table)


def compacted(module: nn.Module) -> torch.export.ExportedProgram:
    indices = torch.tensor([5, 0, 3])
    program = decompose(torch.export.export(module, (indices,)))
    expected = module(indices)
    assert CompactQuantizedWeights()(program).modified
    program.graph_module.recompile()
    torch.testing.assert_close(program.module()(indices), expected)
    return program


def test_weights_are_quantized_once_also_if_others_read_them() -> None:
    program = compacted(Tied())
    assert not any("::quantize" in t or ".quantize" in t for t in targets(program.graph_module))
    stored = [*program.state_dict.values(), *program.constants.values()]
    assert sum(t.dtype == torch.int8 and t.shape == (6, 4) for t in stored) == 1
    assert sum(t.dtype == torch.float32 and t.shape == (6, 4) for t in stored) == 1


def test_a_table_of_bytes_is_looked_up_before_it_is_dequantized() -> None:
    for zero in (0, 3):
        program = compacted(Table(-128, 127, zero))
        assert targets(program.graph_module) == ["quantized_decomposed.embedding_byte.default"]


def test_a_table_of_four_bits_is_packed() -> None:
    program = compacted(Table(-8, 7))
    assert targets(program.graph_module) == ["quantized_decomposed.embedding_4bit.default"]
    stored = [*program.state_dict.values(), *program.constants.values()]
    assert any(t.dtype == torch.uint8 and t.shape == (6, 2) for t in stored)
    assert not any(t.dtype == torch.int8 for t in stored)


def test_a_table_that_others_read_dequantized_is_left() -> None:
    class Both(Table):
        def forward(self, i: Tensor) -> Tensor:
            how: Any = (self.scales, self.zeros, *self.range, torch.int8, 2, torch.float32)
            table = quantized.dequantize_per_channel_group(self.table, *how)
            return nn.functional.embedding(i, table) @ table.T

    program = decompose(torch.export.export(Both(-8, 7), (torch.tensor([5, 0, 3]),)))
    assert not CompactQuantizedWeights()(program).modified
