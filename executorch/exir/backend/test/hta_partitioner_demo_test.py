from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from executorch.exir import EdgeProgramManager, to_edge
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.backend.test.hta_partitioner_demo import (
    HTAPartitionerMultiplePatternsDemo,
    HTAPartitionerOnePatternDemo,
    LSTMConvPattern,
)
from executorch.exir.lowered_backend_module import (
    create_submodule_from_nodes,
    get_lowered_backend_modules,
)

INPUTS = tuple(torch.randn(1, 32) for _ in range(3))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = LSTMConvPattern()

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        output, hidden, cell, convolved = self.part(x, h, c)
        return output - convolved, hidden * cell


def edge() -> EdgeProgramManager:
    return to_edge(torch.export.export(Model().eval(), INPUTS))


@pytest.mark.parametrize(
    ("partitioner", "n_delegates"),
    [(HTAPartitionerOnePatternDemo, 1), (HTAPartitionerMultiplePatternsDemo, 2)],
)
def test_what_matches_a_pattern_is_claimed(
    partitioner: type[Partitioner], n_delegates: int
) -> None:
    lowered = edge().to_backend(partitioner).exported_program().graph_module
    found = [
        [str(n.target) for n in m.original_module.graph.nodes if n.op == "call_function"]
        for m in get_lowered_backend_modules(lowered)
    ]
    assert len(found) == n_delegates
    assert any("convolution" in name for name in found[0])
    rest = [str(n.target) for n in lowered.graph.nodes]
    assert any("aten.sub" in name for name in rest) == (n_delegates == 1)


def test_nodes_become_a_module_that_the_graph_calls() -> None:
    program = edge().exported_program()
    graph_module = program.graph_module
    inputs = [*program.state_dict.values(), *INPUTS]
    with torch.no_grad():
        expected = torch.fx.Interpreter(graph_module).run(*inputs)
        nodes = [n for n in graph_module.graph.nodes if "sub" in str(n.target)]
        module, call = create_submodule_from_nodes(graph_module, nodes, "tag0")
        assert (call.op, call.target, len(call.meta["val"])) == ("call_module", "fused_tag0", 1)
        assert [n.op for n in module.graph.nodes].count("call_function") == 1
        found = torch.fx.Interpreter(graph_module).run(*inputs)
    assert all(map(torch.equal, found, expected))
