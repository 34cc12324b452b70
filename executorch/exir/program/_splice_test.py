import pytest
import torch
from torch import nn

from executorch.exir import to_edge
from executorch.exir.capture._callable import as_module
from executorch.exir.program import _decompose
from executorch.exir.program._splice import Splicer


def splicer_of(function, *args, **options):
    from torch._guards import detect_fake_mode

    program = torch.export.export(as_module(function), args, **options)
    mode = detect_fake_mode([n.meta.get("val") for n in program.graph.nodes])
    splicer = Splicer(program.graph_module, _decompose._cached_table(), {}, mode)
    return splicer, splicer.run()


def needs_torch(function, *args):
    try:
        splicer_of(function, *args)
    except _decompose.NeedsFunctionalization:
        return True
    return False


def test_equal_calls_are_traced_once():
    splicer, graph = splicer_of(lambda x: x.softmax(0).softmax(0).softmax(0), torch.ones(3))
    assert len(splicer.templates) == 1
    assert sum(n.op == "call_function" for n in graph.nodes) == 3


def test_calls_of_other_shapes_dtypes_or_numbers_are_traced_apart():
    def function(x, y):
        return x.sum(0), y.sum(0), y.sum(1), x.long().sum(0)

    splicer, _ = splicer_of(function, torch.ones(3), torch.ones(3, 3))
    assert len([k for k in splicer.templates if "sum" in str(k[0])]) == 4


def test_one_size_node_serves_equal_expressions():
    shapes = ({0: torch.export.Dim("n", max=9)},)
    _, graph = splicer_of(
        lambda x: (torch.ones(x.shape[0]) + x, x.reshape(-1, 1), torch.arange(x.shape[0])),
        torch.ones(4),
        dynamic_shapes=shapes,
    )
    assert len(graph.find_nodes(op="call_function", target=torch.ops.aten.sym_size.int)) == 1


def test_writes_to_fresh_tensors_need_no_help():
    assert not needs_torch(lambda x: (x + 1).relu_().mul_(2), torch.ones(2))


def test_writes_that_other_names_would_miss_go_the_general_way():
    def through_a_view(x):
        y = x + 1
        y.view(-1).mul_(2)
        return y

    assert needs_torch(through_a_view, torch.ones(2))
    assert needs_torch(lambda x: x.mul_(2), torch.ones(2))


@pytest.mark.parametrize("name", ["kept", "moved", "written"])
def test_a_decomposition_that_gives_its_input_under_another_name(name):
    function = {
        "kept": lambda x: x.transpose(0, 0),
        "moved": lambda x: x.transpose(1, -1) + 1,
        "written": lambda x: (x + 1).transpose(0, 0).mul_(2),
    }[name]
    x = torch.randn(2, 3)
    edge = to_edge(torch.export.export(as_module(function), (x,)))
    assert torch.equal(edge.exported_program().module()(x), function(x))


RECURRENT = {
    "lstm": (nn.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3), 2 * 2 * 6),
    "lstm with a projection": (nn.LSTM(3, 4, proj_size=2), (5, 2, 3), 11),
    "gru": (nn.GRU(3, 4), (5, 2, 3), 6),
    "rnn": (nn.RNN(3, 4), (5, 2, 3), 6),
    "lstm cell": (nn.LSTMCell(3, 4), (2, 3), 2),
    "gru cell": (nn.GRUCell(3, 4), (2, 3), 2),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_what_is_kept_is_kept_inside_of_other_operators(name):
    module, shape, count = RECURRENT[name]
    program = torch.export.export(module.eval(), (torch.randn(shape),))
    linear = torch.ops.aten.linear.default
    kept = _decompose.decompose(program, {linear: None})
    calls = kept.graph.find_nodes(op="call_function", target=linear)
    assert len(calls) == count
    x = torch.randn(shape)
    torch.testing.assert_close(kept.module()(x), module(x))
    assert not _decompose.decompose(program).graph.find_nodes(op="call_function", target=linear)


def test_who_keeps_an_operator_is_asked_about_calls_inside_of_others():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.small, self.large = nn.LSTM(3, 4), nn.LSTM(3, 8)

        def forward(self, x):
            return self.small(x)[0], self.large(x)[0]

    linear = torch.ops.aten.linear.default
    asked = []

    def wanted(node):
        asked.append(node)
        assert node.args[1].op == "placeholder"  # the weight, as the program has it
        return node.meta["val"].shape[-1] == 4 * 8

    program = torch.export.export(Two().eval(), (torch.randn(5, 2, 3),))
    users = [dict(n.users) for n in program.graph.nodes]
    kept = _decompose.decompose(program, {linear: wanted})
    calls = kept.graph.find_nodes(op="call_function", target=linear)
    assert [n.meta["val"].shape[-1] for n in calls] == [32] * 6
    assert len(asked) == 2 * 6
    assert [dict(n.users) for n in program.graph.nodes] == users


def differences(x):
    rows = x.view(-1, 4).t()
    return rows.sigmoid().diff(dim=0), rows.topk(2)[1], rows.reshape(-1)[:3].diff()


def differences_of_written(x):
    y = x + 1
    y.view(-1).mul_(2)
    return y.diff()


@pytest.mark.parametrize("function", [differences, differences_of_written])
def test_operators_of_a_table_are_replaced_alone(function):
    x = torch.randn(3, 8)
    shapes = ({0: torch.export.Dim("n", max=9)},)
    program = torch.export.export(as_module(function), (x,), dynamic_shapes=shapes)
    before = str(program.graph)
    diff = torch.ops.aten.diff.default
    new = _decompose.decompose_only(program, {diff: torch.export.default_decompositions()[diff]})
    assert str(program.graph) == before
    assert not new.graph.find_nodes(op="call_function", target=diff)
    for given in (x, torch.randn(5, 8)):
        torch.testing.assert_close(new.module()(given), program.module()(given))
    if function is differences:
        kept = {(n.name, n.target) for n in new.graph.nodes}
        calls = [n for n in program.graph.nodes if "aten" in str(n.target)]
        assert {(n.name, n.target) for n in calls if n.target is not diff} <= kept
