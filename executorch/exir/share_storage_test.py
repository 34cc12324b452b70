import pytest
import torch
from torch.export import Dim
from torch.fx import Graph, GraphModule

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.capture._callable import as_module
from executorch.exir.error import InternalError
from executorch.exir.memory_planning import (
    MemoryPlanningAlgorithmSuite,
    check_no_conflict,
    greedy,
    naive,
    smallest,
)
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.share_storage import extend_lifetimes_of_bases
from executorch.exir.tensor import TensorSpec
from executorch.runtime import Runtime


def lower(function, args, reuse, shapes=None):
    exported = torch.export.export(as_module(function), args, dynamic_shapes=shapes)
    planning = MemoryPlanningPass(reuse_storage=reuse)
    return to_edge(exported).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))


def size(program):
    return sum(program.executorch_program.execution_plan[0].non_const_buffer_sizes)


def run(program, *args):
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return method.execute(args)[0]


def chain(x):
    return (x.mT @ x).sin().exp().tanh().sum()


def test_elementwise_results_lie_where_their_operands_do():
    x = torch.randn(1, 16)
    apart, shared = (lower(chain, (x,), reuse) for reuse in (False, True))
    assert size(shared) < size(apart)
    torch.testing.assert_close(run(shared, x), run(apart, x), rtol=0, atol=0)


def test_dynamic_shapes_share_too():
    def function(x):
        return ((x * 2).sin() + 1).softmax(-1)

    shapes = ({0: Dim("n", max=8)},)
    apart, shared = (lower(function, (torch.randn(4, 16),), r, shapes) for r in (False, True))
    assert size(shared) <= size(apart)
    for n in (1, 8, 3):
        x = torch.randn(n, 16)
        torch.testing.assert_close(run(shared, x), run(apart, x), rtol=0, atol=0)


def places(program):
    """(place of an operand, place of the result) of every call."""
    plan = program.executorch_program.execution_plan[0]

    def place(index):
        value = plan.values[index].val
        info = getattr(value, "allocation_info", None)
        return None if info is None else (info.memory_id, info.memory_offset_low)

    return [
        ([place(a) for a in i.instr_args.args[:-2]], place(i.instr_args.args[-1]))
        for i in plan.chains[0].instructions
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sum(1, keepdim=True) + x).sum(0) + x,  # x is read later
        lambda x: x + x.sum(1, keepdim=True),  # x is the caller's
        lambda x: ((x + 1) @ x).softmax(-1) @ x,  # no elementwise reader
        lambda x: (x + 1).to(torch.float64).sum(),  # another type
        lambda x: (x.sum(1) + 1) * x,  # an operand of another shape
    ],
)
def test_other_operands_are_left_alone(function):
    program = lower(function, (torch.randn(16, 16),), True)
    for operands, result in places(program):
        assert result not in operands
    x = torch.randn(16, 16)
    torch.testing.assert_close(run(program, x), function(x))


def test_views_of_the_operand_in_another_shape_keep_it():
    def function(x):
        y = (x + 1)[:1]  # [1, 16]
        return y + y.view(16, 1)[:1]

    x = torch.randn(2, 16)
    torch.testing.assert_close(run(lower(function, (x,), True), x), function(x))


def test_named_algorithms_keep_their_results():
    assert not MemoryPlanningPass("greedy").reuse_storage
    assert MemoryPlanningPass().reuse_storage


def test_what_lies_in_other_memory_follows_it_through_every_algorithm() -> None:
    base, child, grandchild, other = (
        TensorSpec.from_tensor(torch.empty(n, dtype=torch.uint8)) for n in (64, 24, 8, 64)
    )
    for algo in (naive, greedy, smallest):
        specs = [grandchild, other, child, base]
        for spec in specs:
            spec.lifetime = [0, 1]
        grandchild.lifetime = [4, 5]
        other.lifetime = [5, 6]
        child.storage_base, child.storage_base_offset = base, 16
        grandchild.storage_base, grandchild.storage_base_offset = child, 8
        extend_lifetimes_of_bases(specs)
        assert child.lifetime == base.lifetime == [0, 5]
        suite = MemoryPlanningAlgorithmSuite([algo])
        assert suite(16, specs, GraphModule({}, Graph()), None, 0) == [0, 128]
        assert base.mem_offset is not None
        assert child.mem_offset == base.mem_offset + 16
        assert grandchild.mem_offset == base.mem_offset + 24
        assert grandchild.mem_obj_id == base.mem_obj_id
        check_no_conflict(specs)
    base.storage_base = grandchild
    with pytest.raises(InternalError, match="circle"):
        extend_lifetimes_of_bases(specs)
