import pytest
import torch
from torch import nn
from torch.export import export
from torch.fx import Graph, GraphModule

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.banked_memory_planning import (
    Bank,
    BankedGreedy,
    BankPlacementError,
    TargetMemoryMap,
    banked_memory_planning_pass,
    format_placement_report,
    planned_mem_ids,
)
from executorch.exir.memory_algorithms import greedy
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, check_no_conflict
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.schema import DeviceType
from executorch.exir.tensor import TensorSpec
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer


def _spec(size, first, last, mem_id=None):
    spec = TensorSpec(torch.uint8, [size])
    spec.lifetime, spec.mem_id = [first, last], mem_id
    return spec


def _two(fast, slow, alignment=None):
    return TargetMemoryMap([Bank("fast", fast, 1, alignment), Bank("slow", slow, 3)])


def _plan(target, specs, padding=0):
    module = GraphModule(nn.Module(), Graph())
    sizes = MemoryPlanningAlgorithmSuite([BankedGreedy(target)])(16, specs, module, None, padding)
    check_no_conflict(specs)
    return sizes, [spec.mem_id for spec in specs]


def test_tensors_go_to_the_first_bank_with_room():
    specs = [_spec(512, 0, 3), _spec(256, 1, 4), _spec(128, 2, 5)]
    assert _plan(_two(640, 4096), specs) == ([0, 640, 0, 256], [1, 3, 1])


def test_tensor_lies_in_a_full_bank_where_its_life_allows():
    specs = [_spec(512, 0, 3), _spec(384, 1, 2), _spec(256, 4, 6), _spec(256, 5, 6)]
    assert _plan(_two(512, 512), specs) == ([0, 512, 0, 384], [1, 3, 1, 1])
    assert specs[2].mem_offset != specs[3].mem_offset


def test_pinned_tensor_comes_first():
    specs = [_spec(512, 0, 3), _spec(256, 0, 3, mem_id=1), _spec(64, 0, 3, mem_id=2)]
    assert _plan(_two(512, 512), specs) == ([0, 256, 64, 512], [3, 1, 2])


def test_tensor_that_fits_nowhere_is_named():
    with pytest.raises(BankPlacementError, match="640 bytes.*fast has 512 of 512.*slow has 256"):
        _plan(_two(512, 256), [_spec(640, 0, 1)])
    with pytest.raises(BankPlacementError, match="has to lie in arena 1, but fast has 64 of 512"):
        _plan(_two(512, 4096), [_spec(448, 0, 1, mem_id=1), _spec(128, 0, 1, mem_id=1)])


def test_padding_counts():
    assert _plan(_two(512, 4096), [_spec(512, 0, 1)], 64) == ([0, 0, 0, 576], [3])
    assert _plan(_two(576, 4096), [_spec(512, 0, 1)], 64) == ([0, 576, 0, 0], [1])


def test_bank_has_an_alignment_of_its_own():
    specs = [_spec(100, 0, 1), _spec(90, 0, 1), _spec(80, 0, 1)]
    assert _plan(_two(256, 4096, alignment=64), specs) == ([0, 256, 0, 80], [1, 1, 3])
    assert [spec.mem_offset for spec in specs] == [0, 128, 0]
    with pytest.raises(BankPlacementError, match="multiple of the pass's, 16, found 24"):
        _plan(_two(512, 4096, alignment=24), specs)


def test_tensor_of_a_device_is_refused():
    spec = _spec(16, 0, 1)
    spec.device = DeviceType.CUDA
    with pytest.raises(BankPlacementError, match="CUDA"):
        _plan(_two(512, 512), [spec])


def test_one_bank_is_planned_as_by_greedy():
    torch.manual_seed(0)
    numbers = torch.randint(1, 40, (60, 3)).tolist()
    specs = [_spec(64 * size, first, first + length) for size, first, length in numbers]
    module = GraphModule(nn.Module(), Graph())
    wanted = greedy(16, specs, module, None)
    found = BankedGreedy(TargetMemoryMap([Bank("all", 1 << 20, 1)]))(16, specs, module, None)
    assert found == wanted


@pytest.mark.parametrize(
    ("banks", "error"),
    [
        (list, "expected one bank or more"),
        (lambda: [Bank("a", 1, 1), Bank("a", 1, 2)], "the same name"),
        (lambda: [Bank("a", 1, 1), Bank("b", 1, 1)], "the same mem_id"),
        (lambda: [Bank("a", 0, 1)], "positive size"),
        (lambda: [Bank("a", 1, 0)], "mem_id from 1"),
        (lambda: [Bank("a", 1, 1, 0)], "positive alignment"),
    ],
)
def test_wrong_map_is_refused(banks, error):
    with pytest.raises(ValueError, match=error):
        TargetMemoryMap(banks())


def test_bank_is_found_by_name_and_by_arena():
    target = _two(512, 1024)
    assert target.mem_ids() == [1, 3]
    assert target.bank(target.mem_id("slow")).size == 1024
    assert not target.manages(2)
    with pytest.raises(ValueError, match="arena 2 is no bank"):
        target.bank(2)


class _Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        y = torch.relu(self.up(x))
        return torch.cond(y.sum() > 0, self.down, lambda z: self.down(z) * 2, (y,)) + x


def test_program_in_two_banks_computes_what_the_module_does():
    module, x = _Layers(), torch.randn(4, 16)
    target = TargetMemoryMap([Bank("fast", 1024, 1), Bank("slow", 1 << 16, 2)])
    planning = banked_memory_planning_pass(target)
    manager = to_edge(export(module, (x,))).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=planning)
    )
    plan = manager.executorch_program.execution_plan[0]
    assert len(plan.non_const_buffer_sizes) == 3
    assert 0 < plan.non_const_buffer_sizes[1] <= 1024 < plan.non_const_buffer_sizes[2]
    (found,) = _load_for_executorch_from_buffer(manager.buffer).forward((x,))
    torch.testing.assert_close(found, module(x))
    graph_module = manager.exported_program().graph_module
    report = format_placement_report(
        target, plan.non_const_buffer_sizes, planned_mem_ids(graph_module)
    )
    fast, slow = (line.split() for line in report.splitlines()[1:])
    assert fast[:4] == ["fast", "1", str(plan.non_const_buffer_sizes[1]), "1024"]
    assert int(fast[-1]) > 0 < int(slow[-1])


def test_pass_that_chooses_arenas_plans_for_banks():
    class Pinned(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            for node in graph_module.graph.find_nodes(op="placeholder"):
                node.meta["spec"].mem_id = 3
            return super().run(graph_module, graph_signature)

    suite = MemoryPlanningAlgorithmSuite([BankedGreedy(_two(4096, 4096))])
    config = ExecutorchBackendConfig(memory_planning_pass=Pinned(suite))
    manager = to_edge(export(nn.Softmax(-1), (torch.randn(8, 8),))).to_executorch(config)
    plan = manager.executorch_program.execution_plan[0]
    value = plan.values[plan.inputs[0]].val
    assert value.allocation_info.memory_id == 3
    assert plan.values[plan.outputs[0]].val.allocation_info.memory_id == 1


def test_shared_buffers_are_refused():
    with pytest.raises(ValueError, match="share_mutable_buffers needs arena 2"):
        banked_memory_planning_pass(_two(512, 512), share_mutable_buffers=True)
