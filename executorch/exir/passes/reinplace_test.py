import pytest
import torch
from torch import nn
from torch.export import export

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.passes.reinplace import UndoReinplace, reinplace_pass
from executorch.runtime import Runtime

_OPS = {ops.edge.aten.add.Tensor, ops.edge.aten.relu.default}


class _Chain(nn.Module):
    def forward(self, x, y):
        t = torch.relu(x + y)
        return torch.relu(t + y) * 2


class _Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4, 3))

    def forward(self, x):
        self.state.add_(x)
        return self.state.sum(0)


def _operators(manager):
    plan = manager.executorch_program.execution_plan[0]
    return {f"{op.name}.{op.overload}" for op in plan.operators}


def _run(manager, *calls):
    method = Runtime.get().load_program(manager.buffer).load_method("forward")
    return [method.execute(list(inputs))[0] for inputs in calls]


@pytest.mark.parametrize("by_config", [False, True])
def test_operators_without_an_in_place_kernel_run(by_config, monkeypatch):
    # A program with such operators is none of the edge dialect, which the checks of tests demand.
    monkeypatch.delenv("EXECUTORCH_CHECK_PASSES", raising=False)
    inputs = (torch.randn(3, 4), torch.randn(3, 4))
    edge = to_edge(export(_Chain(), inputs))
    if not by_config:
        program = reinplace_pass(edge.exported_program(), ops_to_inplace=_OPS)
        assert {"aten.add_.Tensor", "aten.relu_.default"} <= {
            getattr(node.target, "__name__", "") for node in program.graph.nodes
        }
    config = ExecutorchBackendConfig(reinplace_extra_ops=_OPS if by_config else None)
    manager = edge.to_executorch(config)
    assert {"aten::add.out", "aten::relu.out"} <= _operators(manager)
    torch.testing.assert_close(_run(manager, inputs), [_Chain()(*inputs)])


def test_buffer_that_an_operator_without_a_kernel_writes_keeps_its_value():
    calls = [(torch.randn(4, 3),) for _ in range(3)]
    config = ExecutorchBackendConfig(reinplace_extra_ops=_OPS)
    manager = to_edge(export(_Cache(), calls[0])).to_executorch(config)
    module = _Cache()
    torch.testing.assert_close(_run(manager, *calls), [module(*inputs) for inputs in calls])


def test_later_readers_of_what_was_written_read_the_result():
    edge = to_edge(export(_Chain(), (torch.randn(3, 4), torch.randn(3, 4)))).exported_program()
    graph = edge.graph
    first = next(n for n in graph.nodes if n.target is ops.edge.aten.relu.default)
    output = graph.output_node()
    (written,) = first.all_input_nodes
    first.target = ops.edge.aten.relu_.default
    output.args = ((written,),)
    view = ProgramView(edge, Dialect.BACKEND)
    assert UndoReinplace({"aten::relu.out"}).edit(view)
    assert first.target is ops.edge.aten.relu.default
    assert first.args == (written,) and output.args == ((first,),)


def test_in_place_kernels_are_called():
    edge = to_edge(export(_Chain(), (torch.randn(3, 4), torch.randn(3, 4)))).exported_program()
    reinplace_pass(edge, ops_to_inplace=_OPS)
    names = [str(node.target) for node in edge.graph.nodes]
    known = {"aten::add_.Tensor", "aten::relu_"}
    assert not UndoReinplace(known).edit(ProgramView(edge, Dialect.BACKEND))
    assert not UndoReinplace(set()).edit(ProgramView(edge, Dialect.BACKEND))
    assert [str(node.target) for node in edge.graph.nodes] == names
