"""Both halves of the example backend, and the run-time half of the demonstration backend."""

import pytest
import torch
from torch.export import Dim

from executorch.backends.example.example_backend import ExampleBackend, ExamplePartitioner
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_api import to_backend
from executorch.exir.backend.test.backend_with_compiler_demo import (
    BackendWithCompilerDemo,  # noqa: F401 (found by name)
)
from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo
from executorch.exir.backend.utils import get_delegation_info
from executorch.runtime import Runtime

REGISTERED = Runtime.get().backend_registry.registered_backend_names
pytestmark = pytest.mark.skipif(
    "ExampleBackend" not in REGISTERED, reason="the runtime is built without the example backend"
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 4))
        self.bias = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        y = torch.relu(x @ self.weight + self.bias)
        return y.softmax(-1) - y * self.bias, y.sin()


def close(method, module, *inputs, terms):
    """Sums of `terms` products that round differently err by that many roundings of the largest."""
    expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    step = 2 * terms * torch.finfo(torch.float32).eps
    for got, want in zip(method.execute(inputs), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=step, atol=step * float(want.abs().max()))


def load(manager_or_buffer):
    data = getattr(manager_or_buffer, "buffer", manager_or_buffer)
    return Runtime.get().load_program(data).load_method("forward")


@torch.no_grad()
def test_delegated_program_agrees_with_the_model_at_every_size():
    module = Net()
    program = torch.export.export(
        module, (torch.randn(2, 3),), dynamic_shapes=({0: Dim("n", max=8)},)
    )
    manager = to_edge_transform_and_lower(program, partitioner=[ExamplePartitioner()])
    assert not manager.exported_program().state_dict  # the delegates have it
    method = load(manager.to_executorch())
    for n in (1, 8, 3):
        close(method, module, torch.randn(n, 3), terms=3 + 4 + 2)


@torch.no_grad()
def test_a_number_is_a_constant_without_dims():
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x * 2 + x

    module, x = Scaled(), torch.randn(3, 4)
    program = torch.export.export(module, (x,))
    manager = to_edge_transform_and_lower(program, partitioner=[ExamplePartitioner()])
    close(load(manager.to_executorch()), module, x, terms=2)


def test_what_is_left_out_has_a_reason_and_a_line():
    manager = to_edge_transform_and_lower(
        torch.export.export(Net(), (torch.randn(2, 3),)), partitioner=[ExamplePartitioner()]
    )
    info = get_delegation_info(manager.exported_program().graph_module)
    (left,) = info.left_out
    assert left.op_type == "aten__softmax_default"
    assert left.reason == "ExampleBackend has no such operator"
    assert "softmax" in left.line
    assert left.reason in info._repr_html_()


@torch.no_grad()
def test_a_whole_program_runs_by_itself():
    module = Net()
    module.forward = lambda x: (x @ module.weight + module.bias).relu()
    program = to_edge(torch.export.export(module, (torch.randn(2, 3),))).exported_program()
    lowered = to_backend(ExampleBackend.__name__, program, [])
    close(load(lowered.buffer()), module, torch.randn(2, 3), terms=4)


def test_equal_constants_of_two_delegates_are_stored_once():
    program = torch.export.export(Net(), (torch.randn(2, 3),))
    manager = to_edge_transform_and_lower(program, partitioner=[ExamplePartitioner()])
    named = manager.to_executorch()._named_data
    assert len(named.buffers) == 2  # weight and bias, which both delegates read


def test_other_types_are_left_to_the_kernels():
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2, dtype=torch.float64),))
    manager = to_edge_transform_and_lower(program, partitioner=[ExamplePartitioner()])
    info = get_delegation_info(manager.exported_program().graph_module)
    assert info.num_delegated_nodes == 0 and "float32" in info.left_out[0].reason


def test_the_tutorials_backend_runs_what_it_was_given():
    class Demo(torch.nn.Module):
        def forward(self, a, x, b):
            y = torch.mm(a, x)
            z = y + b
            a = z - y
            return torch.mm(a, x) + b

    args = tuple(torch.randn(2, 2) for _ in range(3))
    manager = to_edge(torch.export.export(Demo(), args)).to_backend(AddMulPartitionerDemo())
    close(load(manager.to_executorch()), Demo(), *args, terms=8)


def test_the_tutorials_composed_module_runs():
    class Sin(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x)

    edge = to_edge(torch.export.export(Sin(), (torch.ones(1),))).exported_program()
    lowered = to_backend("BackendWithCompilerDemo", edge, [])

    class Composed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lowerable = lowered

        def forward(self, x):
            a = self.lowerable(x)
            b = self.lowerable(a)
            return a, b, a + b + 0.3

    manager = to_edge(torch.export.export(Composed(), (torch.ones(1),)))
    method = load(manager.to_executorch())
    x = torch.randn(1)
    expected = (x.sin(), x.sin().sin(), x.sin() + x.sin().sin() + 0.3)
    for got, want in zip(method.execute([x]), expected, strict=True):
        torch.testing.assert_close(got, want)


def test_branches_run_in_the_delegate():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x + x, lambda x: (x * x) @ x, (x,))

    program = torch.export.export(Branch(), (torch.ones(2, 2),))
    manager = to_edge_transform_and_lower(program, partitioner=[ExamplePartitioner()])
    method = load(manager.to_executorch())
    for x in (torch.ones(2, 2), -torch.ones(2, 2)):
        close(method, Branch(), x, terms=3)


@pytest.mark.parametrize("size", [0, 1, 30])
def test_damaged_text_is_an_error(size):
    edge = to_edge(torch.export.export(torch.nn.ReLU(), (torch.ones(2),))).exported_program()
    lowered = to_backend("ExampleBackend", edge, [])
    lowered._processed_bytes = lowered.processed_bytes[:size] + b"?"
    with pytest.raises(RuntimeError):
        load(lowered.buffer())
