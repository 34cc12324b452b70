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
