import torch

from executorch.exir import to_edge
from executorch.exir.passes.remove_dead_code import RemoveDeadCode
from executorch.exir.passes.remove_non_core_aten_op_graph_asserts_pass import (
    RemoveNonCoreAtenOpGraphAssertsPass,
)
from executorch.exir.testing import hand_made, targets

aten = torch.ops.aten


def test_calls_without_readers_go_and_inputs_stay():
    def build(call, x, unused):
        call(aten.relu.default, call(aten.sin.default, x))
        return call(aten.cos.default, x)

    gm = RemoveDeadCode()(hand_made(build, torch.ones(1), torch.ones(1))).graph_module
    assert targets(gm) == ["aten.cos.default"]
    assert len(gm.graph.find_nodes(op="placeholder")) == 2


def test_metadata_assertions_go():
    def build(call, x):
        call(aten._assert_tensor_metadata.default, x, dtype=torch.float32)
        return call(aten.cos.default, x)

    gm = RemoveNonCoreAtenOpGraphAssertsPass()(hand_made(build, torch.ones(1))).graph_module
    assert targets(gm) == ["aten.cos.default"]


def test_assertions_about_values_go():
    class Checked(torch.nn.Module):
        def forward(self, x):
            torch._assert_async((x > 0).all())
            torch._assert_async((x < 9).all(), "too large")
            return x.cos()

    edge = to_edge(torch.export.export(Checked(), (torch.ones(2),)))
    plan = edge.to_executorch().executorch_program.execution_plan[0]
    assert [operator.name for operator in plan.operators] == ["aten::cos"]


def test_unused_parameters_leave_graph_signature_and_state():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used = torch.nn.Parameter(torch.ones(2))
            self.unused = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x + self.used

    given = torch.export.export(Model(), (torch.ones(2),))
    program = to_edge(given).exported_program()
    assert set(program.state_dict) == {"used"}
    assert program.graph_signature.parameters == ("used",) or list(
        program.graph_signature.parameters
    ) == ["used"]
    assert "unused" in given.state_dict
