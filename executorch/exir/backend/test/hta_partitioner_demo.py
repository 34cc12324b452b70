"""Partitioners that claim what looks like given modules."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram, export
from torch.fx import Graph, GraphModule
from torch.fx.passes.infra.partitioner import Partition

from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_pattern_op_partitions,
)
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.test.demo_backend import DemoBackend
from executorch.exir.program import to_edge


class LSTMConvPattern(nn.Module):
    """An LSTM of one step, and a convolution over its output."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.conv = nn.LSTM(32, 32), nn.Conv1d(1, 1, 3, padding=1)

    def forward(self, x_raw: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        output, (hidden, cell) = self.lstm(x_raw, (h, c))
        return output, hidden, cell, self.conv(output)


class SubPattern(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x - y


def _graph(module: nn.Module, n_inputs: int) -> Graph:
    inputs = tuple(torch.ones(1, 32) for _ in range(n_inputs))
    program = to_edge(export(module.eval(), inputs)).exported_program()
    return program.graph_module.graph


class _PatternPartitioner(Partitioner):
    patterns: list[Graph]

    def __init__(self) -> None:
        super().__init__()
        self.delegation_spec = DelegationSpec(DemoBackend.__name__, [])

    def generate_partition_list(self, graph_module: GraphModule) -> list[Partition]:
        """What each pattern matches. RuntimeError if a node belongs to two matches."""
        found = [generate_pattern_op_partitions(graph_module, patterns=[p]) for p in self.patterns]
        if not self.is_exclusive(found):
            raise RuntimeError(f"{type(self).__name__}: the patterns match the same nodes")
        return [partition for partitions in found for partition in partitions]

    def is_exclusive(self, partition_list_list: list[list[Partition]]) -> bool:
        nodes = [n for ps in partition_list_list for p in ps for n in p.nodes]
        return len(nodes) == len(set(nodes))

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tags = {}
        partitions = self.generate_partition_list(exported_program.graph_module)
        for i, partition in enumerate(partitions):
            tags[f"tag{i}"] = self.delegation_spec
            for node in partition.nodes:
                node.meta[TAG] = f"tag{i}"
        return PartitionResult(exported_program, tags)


class HTAPartitionerOnePatternDemo(_PatternPartitioner):
    """Claims `LSTMConvPattern`."""

    def __init__(self) -> None:
        super().__init__()
        self.patterns = [_graph(LSTMConvPattern(), 3)]


class HTAPartitionerMultiplePatternsDemo(_PatternPartitioner):
    """Claims `LSTMConvPattern` and subtractions."""

    def __init__(self) -> None:
        super().__init__()
        self.patterns = [_graph(LSTMConvPattern(), 3), _graph(SubPattern(), 2)]
