import pytest
import torch
from torch.fx.passes.operator_support import OperatorSupportBase

from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.backend.canonical_partitioners.config_partitioner import (
    ConfigerationBasedPartitioner,
    PartitionerConfig,
    format_target_name,
)
from executorch.exir.backend.canonical_partitioners.duplicate_constant_node_pass import (
    duplicate_constant_node,
)
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
)
from executorch.exir.backend.partitioner import DelegationSpec
from executorch.exir.backend.test.demo_backend import DemoBackend  # noqa: F401 (found by name)
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.dialects._ops import ops


class LinearConfig(PartitionerConfig):
    target_name = "linear.default"

    def check_constraints(self, node, ep):
        return len(node.args) == 3  # with a bias

    def get_original_aten(self):
        return torch.ops.aten.linear.default

    def get_partition(self, node, ep):
        return [node, *node.args[1:]]


class ReluConfig(PartitionerConfig):
    target_name = "relu.default"

    def check_constraints(self, node, ep):
        return True

    def get_original_aten(self):
        return None

    def get_partition(self, node, ep):
        return [node]


def partitioner():
    return ConfigerationBasedPartitioner(
        DelegationSpec("DemoBackend", []), [LinearConfig(), ReluConfig()]
    )


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 4)
        self.b = torch.nn.Linear(4, 3, bias=False)

    def forward(self, x):
        return self.b(self.a(x).relu()).tanh()


def test_rules_claim_calls_with_their_constants():
    program = torch.export.export(Net(), (torch.randn(2, 3),))
    manager = to_edge_transform_and_lower(program, partitioner=[partitioner()])
    lowered = manager.exported_program()
    assert list(lowered.state_dict) == ["b.weight"]
    original = lowered.graph_module.lowered_module_0.original_module
    assert set(original.state_dict) == {"a.weight", "a.bias"}
    assert [n.target.__name__ for n in original.graph.nodes if n.op == "call_function"] == [
        "aten.linear.default",
        "aten.relu.default",
    ]
    reasons = {e.op_type: e.reason for e in get_delegation_info(lowered.graph_module).left_out}
    assert reasons["aten_tanh_default"] == "no rule for the operator"


def test_two_rules_for_one_operator_are_refused():
    with pytest.raises(RuntimeError, match="two rules for relu.default"):
        ConfigerationBasedPartitioner(DelegationSpec("x", []), [ReluConfig(), ReluConfig()])


def test_names_of_rules_have_no_namespace():
    assert format_target_name("aten.add.Tensor") == "add.Tensor"
    assert format_target_name("aten::add.Tensor") == "add.Tensor"
    assert format_target_name("my_ops.add.Tensor") == "my_ops.add.Tensor"


def test_patterns_are_found_and_joined():
    def model(x):
        y = (x.sin() + x).cos()
        return (y.sin() + y).tanh()

    class Module(torch.nn.Module):
        def forward(self, x):
            return model(x)

    program = to_edge(torch.export.export(Module(), (torch.randn(3),))).exported_program()

    pattern = torch.fx.Graph()
    x = pattern.placeholder("x")
    sin = pattern.call_function(ops.edge.aten.sin.default, (x,))
    pattern.output(pattern.call_function(ops.edge.aten.add.Tensor, (sin, x)))
    partitions = generate_pattern_op_partitions(program.graph_module, [pattern])
    assert [sorted(n.target.__name__ for n in p.nodes) for p in partitions] == [
        ["aten.add.Tensor", "aten.sin.default"]
    ] * 2


def test_listed_weights_are_in_the_partition_of_their_first_reader():
    model = torch.nn.Sequential(torch.nn.Conv1d(1, 1, 1), torch.nn.Tanh(), torch.nn.Conv1d(1, 1, 1))
    program = to_edge(torch.export.export(model, (torch.randn(1, 3),))).exported_program()
    listed = [n for n in program.graph.nodes if n.name.startswith("p_") or "conv" in n.name]
    partitions = generate_partitions_from_list_of_nodes(program.graph_module, [listed])
    found = [sorted(n.name for n in p.nodes if n.op == "placeholder") for p in partitions]
    assert found == [["p_0_bias", "p_0_weight"], ["p_2_bias", "p_2_weight"]]
    assert all(any("conv" in n.name for n in p.nodes) for p in partitions)

    class Supported(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node in listed

    supported = generate_pattern_op_partitions(program.graph_module, op_support=Supported())
    assert [set(p.nodes) for p in supported] == [set(p.nodes) for p in partitions]


def test_constants_are_duplicated_for_every_reader():
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(3))

        def forward(self, x):
            return x * self.w + self.w

    module, x = Shared(), torch.randn(3)
    program = to_edge(torch.export.export(module, (x,))).exported_program()
    (new,) = duplicate_constant_node(program, "p_w")
    assert new != "p_w"
    program.validate()
    torch.testing.assert_close(program.module()(x), module(x))
