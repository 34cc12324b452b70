import pytest
import torch
from torch.export import Dim

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.capture._callable import as_module
from executorch.exir.passes import MemoryPlanningPass
from executorch.runtime import Runtime


def lower(function, *args, shapes=None, config=None):
    exported = torch.export.export(as_module(function), args, dynamic_shapes=shapes)
    return to_edge(exported).to_executorch(config)


def calls(program):
    plan = program.executorch_program.execution_plan[0]
    return [
        plan.operators[i.instr_args.op_index].name.split("::")[1]
        for i in plan.chains[0].instructions
    ]


def check(program, function, *args):
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    expected = function(*args)
    for got, want in zip(
        method.execute(args), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


CASES = {
    "clone": (lambda x: (x + 1).clone() * 2, ["add", "mul"]),
    "copy of that dtype": (lambda x: (x + 1).to(torch.float32, copy=True) * 2, ["add", "mul"]),
    "expand to that shape": (lambda x: (x + 1).expand(2, 1, 3, 4) * 2, ["add", "mul"]),
    "permutations that cancel": (lambda x: x.mT.relu().mT.mT.mT * 2, ["permute_copy", "relu"]),
    "unsqueeze": (lambda x: (x + 1).unsqueeze(1) * 2, ["add", "mul"]),
    "squeeze": (lambda x: (x + 1).squeeze(1) * 2, ["add", "mul"]),
    "moving a dimension of size 1": (lambda x: (x + 1).permute(1, 0, 2, 3) * 2, ["add", "mul"]),
}


@pytest.mark.parametrize("name", CASES)
def test_copies_that_change_nothing_are_free(name):
    function, expected = CASES[name]
    x = torch.randn(2, 1, 3, 4)
    program = lower(function, x)
    if name == "permutations that cancel":
        assert calls(program).count("permute_copy") == 2
    else:
        assert calls(program) == expected
    check(program, function, x)


def test_two_permutations_become_one():
    def function(x):
        return x.permute(1, 2, 0).permute(1, 2, 0) + 1

    x = torch.randn(2, 3, 4)
    program = lower(function, x)
    assert calls(program) == ["permute_copy", "add"]
    check(program, function, x)


def test_dynamic_dimensions_are_inferred():
    def function(x):
        return (x + 1).unsqueeze(0) * 2

    program = lower(function, torch.randn(3, 4), shapes=({0: Dim("n", max=5)},))
    assert calls(program) == ["add", "et_view", "mul"]
    for n in (1, 3, 5):
        check(program, function, torch.randn(n, 4))


def test_outputs_stay_tensors_of_their_own():
    def function(x):
        return x.clone(), x + 1

    x = torch.randn(3)
    program = lower(function, x)
    check(program, function, x)
    plan = program.executorch_program.execution_plan[0]
    assert plan.inputs[0] not in plan.outputs


def test_old_value_of_a_buffer_is_kept_for_the_caller():
    class Swap(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(3))

        def forward(self, x):
            old = self.last.clone()
            self.last.copy_(x)
            return old

    program = to_edge(torch.export.export(Swap(), (torch.ones(3),))).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    given = [torch.full((3,), float(i)) for i in range(3)]
    results = [method.execute((x,))[0].clone() for x in given]
    assert [float(r[0]) for r in results] == [0.0, 0.0, 1.0]


def test_reshaped_output_is_a_view_where_its_memory_is_planned():
    def function(x):
        return (x + 1).view(2, 6), x * 3

    x = torch.randn(3, 4)
    program = lower(function, x)
    assert calls(program) == ["add", "mul"]
    check(program, function, x)


def test_reshaped_output_of_dynamic_shape_is_a_view():
    def function(x):
        return (x + 1).view(-1, 2)

    program = lower(function, torch.randn(3, 4), shapes=({0: Dim("n", max=5)},))
    assert "view_copy" not in calls(program)
    for n in (5, 1, 4):
        check(program, function, torch.randn(n, 4))


def test_reshaped_output_in_the_callers_memory_is_copied():
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_output=False)
    )
    program = lower(lambda x: (x + 1).view(2, 6), torch.randn(3, 4), config=config)
    assert calls(program) == ["add", "view_copy"]


def test_outputs_of_one_memory_are_copied():
    def function(x):
        y = x + 1
        return y, y.view(2, 6)

    x = torch.randn(3, 4)
    program = lower(function, x)
    assert calls(program) == ["add", "view_copy"]
    check(program, function, x)
