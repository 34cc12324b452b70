import torch
from torch.fx import Graph, GraphModule

from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.passes.merge_common_subexpressions import MergeCommonSubexpressions
from executorch.runtime import Runtime

add, view = ops.edge.aten.add.Tensor, ops.edge.aten.view_copy.default


def merged(module, *args):
    program = to_edge(torch.export.export(module, args)).exported_program()
    MergeCommonSubexpressions()(program)
    program.graph_module.recompile()
    return program


def count(graph_module, op):
    return sum(n.target is op for n in graph_module.graph.nodes)


class Twice(torch.nn.Module):
    def forward(self, x):
        return (x + 1).sin() * (x + 1).cos()


class Outputs(torch.nn.Module):
    def forward(self, x):
        return x + 1, x + 1


class Random(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(3) - torch.rand(3)


class Zeros(torch.nn.Module):
    def forward(self, x):
        return torch.full_like(x, 0.0), torch.full_like(x, -0.0)


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: (x + 1) * (x + 1), lambda x: x - 1, (x,))


def test_equal_calls_are_computed_once():
    program, x = merged(Twice(), torch.randn(3)), torch.randn(3)
    assert count(program.graph_module, add) == 1
    torch.testing.assert_close(program.module()(x), Twice()(x))


def test_the_first_call_keeps_its_debug_handle():
    program = to_edge(torch.export.export(Twice(), (torch.randn(3),))).exported_program()
    first = next(n for n in program.graph.nodes if n.target is add).meta["debug_handle"]
    MergeCommonSubexpressions()(program)
    assert [n.meta["debug_handle"] for n in program.graph.nodes if n.target is add] == [first]


def test_equal_outputs_stay_two_tensors():
    assert count(merged(Outputs(), torch.randn(3)).graph_module, add) == 2


def test_random_numbers_are_drawn_anew():
    graph_module = merged(Random(), torch.randn(3)).graph_module
    assert sum("rand" in str(n.target) for n in graph_module.graph.nodes) == 2


def test_zeros_of_different_sign_differ():
    a, b = merged(Zeros(), torch.randn(3)).module()(torch.randn(3))
    assert torch.equal(1 / a, torch.full((3,), torch.inf))
    assert torch.equal(1 / b, torch.full((3,), -torch.inf))


def test_branches_are_merged_by_themselves():
    graph_module = merged(Branches(), torch.ones(2)).graph_module
    assert count(graph_module.true_graph_0, add) == 1


def graph_with_write(after_first):
    """a = x + 1; x[:] = 2; b = x + 1, or a, b = x + 1; a[:] = 2."""
    graph = Graph()
    x = graph.placeholder("x")
    a = graph.call_function(add, (x, 1))
    if after_first:
        b = graph.call_function(add, (x, 1))
        graph.call_function(torch.ops.aten.fill_.Scalar, (a, 2))
    else:
        graph.call_function(torch.ops.aten.fill_.Scalar, (x, 2))
        b = graph.call_function(add, (x, 1))
    graph.output((a, graph.call_function(ops.edge.aten.neg.default, (b,))))
    return GraphModule({}, graph)


def test_values_before_and_after_a_write_differ():
    graph_module = graph_with_write(after_first=False)
    assert not MergeCommonSubexpressions().edit_graph(graph_module)


def test_what_is_written_in_place_stays_apart():
    graph_module = graph_with_write(after_first=True)
    assert not MergeCommonSubexpressions().edit_graph(graph_module)


def test_results_of_merged_calls_stay_in_the_memory_that_is_written():
    class Unpool(torch.nn.Module):
        def forward(self, x):
            pooled = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
            again = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
            return pooled, torch.nn.functional.max_unpool2d(*again, 2)

    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    program = to_edge(torch.export.export(Unpool(), (x,))).to_executorch()
    found = Runtime.get().load_program(program.buffer).load_method("forward").execute([x])
    (values, indices), unpooled = Unpool()(x)
    for got, want in zip(found, (values, indices, unpooled), strict=True):
        assert torch.equal(got, want)
