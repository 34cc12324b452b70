import json

import pytest
import torch
from torch.export import export

from executorch.exir import to_edge
from executorch.util.activation_memory_profiler import (
    create_tensor_allocation_info,
    generate_memory_trace,
)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 0).view(8) @ torch.cumsum(x, 1).view(8) + x.sum()


@pytest.fixture(scope="module")
def program():
    return to_edge(export(Model(), (torch.ones(2, 4),))).to_executorch()


def test_what_is_alive_together_fits_into_the_arena(program) -> None:
    graph_module = program.exported_program().graph_module
    steps = create_tensor_allocation_info(graph_module.graph)
    assert len(steps) == len(graph_module.graph.nodes)
    arena = graph_module.meta["non_const_buffer_sizes"][1]
    for step in steps:
        ends = [a.memory_offset + a.size_bytes for a in step.allocations]
        assert sum(a.size_bytes for a in step.allocations) <= arena
        assert max(ends, default=0) <= arena
    assert max(len(step.allocations) for step in steps) >= 3


@pytest.mark.parametrize("offsets", [False, True])
def test_a_trace_has_an_event_for_each_tensor_and_step(program, tmp_path, offsets) -> None:
    file = tmp_path / "trace.json"
    generate_memory_trace(program, str(file), enable_memory_offsets=offsets)
    events = json.loads(file.read_text())["traceEvents"]
    steps = create_tensor_allocation_info(program.exported_program().graph_module.graph)
    assert len(events) == sum(len(step.allocations) for step in steps)
    for i, step in enumerate(steps):
        mine = [e for e in events if e["tid"] == i]
        places = [a.memory_offset for a in step.allocations]
        if not offsets:
            places = [sum(a.size_bytes for a in step.allocations[:k]) for k in range(len(mine))]
        assert [e["ts"] for e in mine] == places
        assert [e["args"]["bytes"] for e in mine] == [e["dur"] for e in mine]
    assert any("activation_memory_profiler_test.py" in e["args"]["source"] for e in events)
    generate_memory_trace(program, str(file), ommit_metadata=True)
    assert not any(e["args"] for e in json.loads(file.read_text())["traceEvents"])


def test_an_edge_program_has_no_plan(tmp_path) -> None:
    edge = to_edge(export(Model(), (torch.ones(2, 4),)))
    with pytest.raises(TypeError, match="expected an ExecutorchProgramManager, found EdgeProgram"):
        generate_memory_trace(edge, str(tmp_path / "t.json"))
