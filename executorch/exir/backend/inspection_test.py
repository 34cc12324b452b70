"""What a partitioner's author and a model's author look at."""

import logging

import pytest
import torch
from torch.fx.passes.operator_support import chain

from executorch.exir import to_edge
from executorch.exir.backend.operator_support import (
    DontPartition,
    DontPartitionModule,
    DontPartitionName,
)
from executorch.exir.backend.test.backend_with_compiler_demo import (
    BackendWithCompilerDemo,  # noqa: F401 (found by name)
)
from executorch.exir.backend.test.op_partitioner_demo import (
    AddMulPartitionerDemo,
    AddOperatorSupport,
)
from executorch.exir.backend.utils import (
    DelegateMappingBuilder,
    WhyNoPartition,
    WhyNoPartitionReporter,
    format_delegated_graph,
    get_delegated_payload,
    get_delegates,
    get_delegation_info,
    get_non_lowered_nodes,
    is_identical_graph,
    is_shape_dynamic,
    print_delegated_graph,
)
from executorch.exir.dialects._ops import ops
from executorch.exir.pass_base import ExportPass


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.nn.Sigmoid()

    def forward(self, a, x, b):
        y = torch.mm(a, x)
        z = self.act(y + b)
        return torch.mm(z, x) + b


ARGS = tuple(torch.randn(2, 2) for _ in range(3))


@pytest.fixture
def edge():
    return to_edge(torch.export.export(Model(), ARGS))


@pytest.fixture
def lowered(edge):
    return edge.to_backend(AddMulPartitionerDemo()).exported_program().graph_module


def test_summary_has_three_lines(lowered):
    assert get_delegation_info(lowered).get_summary() == (
        "Total delegated subgraphs: 2\n"
        "Number of delegated nodes: 4\n"
        "Number of non-delegated nodes: 3\n"
    )


def test_operators_are_listed_with_a_total(lowered):
    frame = get_delegation_info(lowered).get_operator_delegation_dataframe()
    assert list(frame.columns) == [
        "op_type",
        "occurrences_in_delegated_graphs",
        "occurrences_in_non_delegated_graphs",
    ]
    assert frame.values.tolist() == [
        ["aten_add_tensor", 2, 0],
        ["aten_mm_default", 2, 0],
        ["aten_sigmoid_default", 0, 1],
        ["getitem", 0, 2],
        ["Total", 4, 3],
    ]


def test_lowered_graphs_are_indented_under_their_backend(lowered, capsys):
    text = format_delegated_graph(lowered)
    lines = text.splitlines()
    at = lines.index("    backend_id: BackendWithCompilerDemo")
    assert lines[0] == "graph():"
    assert lines[at - 1].startswith("  %lowered_module_0 : [num_users=1] = get_attr")
    assert lines[at + 1] == "    lowered graph():"
    assert lines[at + 2].startswith("      %a : [num_users=1] = placeholder[target=a]")
    assert lines[-1] == "  return (getitem_1,)"
    assert print_delegated_graph(lowered) is None
    assert capsys.readouterr().out.strip() == text.strip()


def test_payload_and_calls_are_found(lowered):
    payload = get_delegated_payload(lowered)
    assert list(payload) == ["lowered_module_0", "lowered_module_1"]
    backend_id, specs, blob = payload["lowered_module_0"]
    assert (backend_id, specs[0].key, blob[:10]) == (
        "BackendWithCompilerDemo",
        "max_value",
        b"2version:0",
    )
    assert [n.name for n in get_delegates(lowered.graph)] == list(payload)
    assert [n.name for n in get_non_lowered_nodes(lowered.graph)] == ["aten_sigmoid_default"]


def test_passes_run_over_delegated_graphs(edge):
    manager = edge.to_backend(AddMulPartitionerDemo()).transform([ExportPass()])
    program = manager.exported_program()
    assert get_delegation_info(program.graph_module).num_delegated_subgraphs == 2
    torch.testing.assert_close(program.module()(*ARGS), Model()(*ARGS))


def test_graphs_are_compared_by_their_calls(edge):
    graph_module = edge.exported_program().graph_module
    other = to_edge(torch.export.export(Model(), ARGS)).exported_program().graph_module
    assert is_identical_graph(graph_module, other)
    mm = next(n for n in other.graph.nodes if n.target == ops.edge.aten.mm.default)
    mm.args = mm.args[::-1]
    assert not is_identical_graph(graph_module, other)
    assert not is_shape_dynamic(mm)


def test_reasons_are_reported_with_the_users_line(edge):
    program = edge.exported_program()
    reporter = WhyNoPartitionReporter()
    support = reporter.wrap_check(AddOperatorSupport(), "no addition")
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert sum(support.is_node_supported({}, n) for n in calls) == 2
    report = reporter.get_table_report()
    assert report.count("no addition") == 3 and "aten.sigmoid.default" in report
    info = get_delegation_info(program.graph_module)
    assert [left.reason for left in info.left_out] == ["no addition"] * 3
    assert "torch.mm" in info.left_out[0].line


def test_a_reason_is_logged(edge, caplog):
    node = next(n for n in edge.exported_program().graph.nodes if n.op == "call_function")
    with caplog.at_level(logging.DEBUG, "partitioner"):
        WhyNoPartition(logging.getLogger("partitioner"))(node, "too small")
    assert "too small" in caplog.text and "inspection_test.py" in caplog.text


@pytest.mark.parametrize(
    ("support", "rejected"),
    [
        (DontPartition(ops.edge.aten.mm.default), 2),
        (DontPartition(torch.ops.aten.mm), 2),
        (DontPartition("sigm", exact=False), 1),
        (DontPartitionName("aten_mm_default"), 1),
        (DontPartitionName("aten_mm", exact=False), 2),
        (DontPartitionModule(module_name="Sigmoid"), 1),
        (DontPartitionModule(instance_name="act", exact=False), 1),
    ],
)
def test_nodes_can_be_kept_out(edge, support, rejected):
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    both = chain(support)
    assert sum(not both.is_node_supported({}, n) for n in calls) == rejected
    assert support.num_rejected() == rejected and support.has_rejected_node()


def test_mappings_are_built_by_nodes_or_handles(edge):
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    builder = DelegateMappingBuilder(generated_identifiers=True)
    assert builder.insert_delegate_mapping_entry(nodes=calls[1]) == 0
    assert builder.insert_delegate_mapping_entry(handles=[5, None, 3]) == 1
    assert builder.get_delegate_mapping() == {0: (2,), 1: (3, 5)}
    with pytest.raises(ValueError, match="give none"):
        builder.insert_delegate_mapping_entry(handles=1, identifier="x")
    named = DelegateMappingBuilder()
    named.insert_delegate_mapping_entry(handles=1, identifier="x")
    for wrong in ({"handles": 1, "identifier": "x"}, {"handles": 1, "identifier": 2}, {}):
        with pytest.raises(ValueError):
            named.insert_delegate_mapping_entry(**wrong)
