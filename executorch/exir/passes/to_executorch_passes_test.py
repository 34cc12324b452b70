"""The passes between the edge dialect and emission, each on a graph that needs it."""

import math
import operator

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from executorch.exir import ExecutorchBackendConfig, memory, to_edge
from executorch.exir.error import ExportError
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.passes.insert_write_back_for_buffers_pass import (
    insert_write_back_for_buffers_pass,
)
from executorch.exir.passes.legalize_portable_dim_order_pass import LegalizePortableDimOrderPass
from executorch.exir.passes.reinplace import reinplace_pass
from executorch.exir.passes.replace_edge_with_backend_pass import EdgeToBackendOpsPass
from executorch.exir.passes.spec_prop_pass import SpecPropPass
from executorch.exir.passes.sym_shape_eval_pass import HintBasedSymShapeEvalPass
from executorch.runtime import Runtime


def _edge(model, args, dynamic_shapes=None):
    exported = export(model.eval(), args, dynamic_shapes=dynamic_shapes)
    return to_edge(exported).exported_program()


def _operators(program):
    found = []
    for node in program.graph.nodes:
        op = overload_of(node.target) if node.op == "call_function" else None
        found += [op.name()] if op is not None else []
    return found


class _Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 8, 4))

    def forward(self, position, x):
        self.cache[:, position] = x
        return self.cache.sum(1)


_CACHE_ARGS = (torch.tensor([2, 3]), torch.randn(1, 2, 4))


def test_buffer_update_is_written_in_place_on_request():
    program = reinplace_pass(_edge(_Cache(), _CACHE_ARGS))
    assert "aten::index_put_" in _operators(program)
    insert_write_back_for_buffers_pass(program)
    assert "aten::copy_" not in _operators(program)


def test_buffer_whose_old_value_is_read_later_is_not_written_in_place():
    class ReadsOld(_Cache):
        def forward(self, position, x):
            old = self.cache + 0
            self.cache[:, position] = x
            return old.sum(1) + self.cache.sum(1)

    class ReadsOldLater(_Cache):
        def forward(self, position, x):
            new = self.cache.index_put((torch.tensor([0]), position), x)
            return new.sum(1) + self.cache.sum(1)

    assert "aten::index_put_" in _operators(reinplace_pass(_edge(ReadsOld(), _CACHE_ARGS)))
    late = reinplace_pass(_edge(ReadsOldLater(), (torch.tensor([2]), torch.randn(1, 4))))
    assert "aten::index_put_" not in _operators(late)


def test_what_is_read_in_a_second_place_is_not_written_in_place():
    class Reversed(nn.Module):
        def forward(self, x):
            y = torch.sin(x)
            return y.index_put((torch.tensor([3, 2, 1, 0]),), y)

    class ThroughView(nn.Module):
        def forward(self, x):
            y = torch.sin(x)
            places = (torch.tensor([1, 0]),)
            return y.view(2, 2).index_put(places, y.view(2, 2))

    for model in (Reversed(), ThroughView()):
        x = torch.randn(4)
        edge = to_edge(export(model, (x,)))
        reinplace_pass(edge.exported_program())
        method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
        torch.testing.assert_close(method.execute((x,))[0], model(x))


class _Swap(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.ones(2))
        self.register_buffer("b", torch.zeros(2))

    def forward(self, x):
        return x + self.a


def test_swapped_buffers_are_cloned_before_they_are_overwritten():
    program = _edge(_Swap(), (torch.ones(2),))
    from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument

    names = {s.target: s.arg.name for s in program.graph_signature.input_specs}
    graph = program.graph
    by_name = {n.name: n for n in graph.nodes}
    if names.get("b") not in by_name:
        pytest.skip("the unused buffer was removed")
    output = graph.output_node()
    a, b = by_name[names["a"]], by_name[names["b"]]
    output.args = ((b, a, *output.args[0]),)
    kind = OutputKind.BUFFER_MUTATION
    program.graph_signature.output_specs[:0] = [
        OutputSpec(kind, TensorArgument(name=b.name), "a"),
        OutputSpec(kind, TensorArgument(name=a.name), "b"),
    ]
    insert_write_back_for_buffers_pass(program)
    operators = _operators(program)
    assert operators.count("aten::copy_") == 2
    assert operators.count("dim_order_ops::_clone_dim_order") == 2
    assert operators.index("aten::copy_") > operators.index("dim_order_ops::_clone_dim_order")


class _Pool(nn.Module):
    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, 2).relu()


def test_operators_that_need_contiguous_tensors_get_them():
    x = torch.randn(1, 3, 4, 4).to(memory_format=torch.channels_last)
    program = _edge(_Pool(), (x,))
    LegalizePortableDimOrderPass()(program.graph_module)
    assert _operators(program)[0] == "dim_order_ops::_to_dim_order_copy"
    SpecPropPass()(program)
    orders = {n.name: n.meta["spec"].dim_order for n in program.graph.nodes if n.op != "output"}
    assert orders.pop("x") == (0, 2, 3, 1)
    assert set(orders.values()) == {(0, 1, 2, 3)}


def test_python_arithmetic_on_sizes_becomes_operators():
    class Sizes(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return x.new_zeros(n * 3 + 1, n // 2)

    program = _edge(Sizes(), (torch.randn(6, 2),), ({0: Dim("n", min=4, max=10)},))
    EdgeToBackendOpsPass()(program.graph_module)
    operators = set(_operators(program))
    assert {
        "executorch_prim::mul.Scalar",
        "executorch_prim::add.Scalar",
        "executorch_prim::floordiv.Scalar",
    } <= operators


def test_powers_and_floors_of_sizes_are_computed_from_operators_of_the_runtime():
    class Numbers(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return n**1, n**2, n**3, math.floor(n * 0.6), math.floor(n * -0.6), x / n**2

    program = to_edge(
        export(Numbers(), (torch.ones(4),), dynamic_shapes=({0: Dim("n", min=1, max=9)},))
    )
    method = Runtime.get().load_program(program.to_executorch().buffer).load_method("forward")
    for n in range(1, 10):
        results = method.execute([torch.ones(n)])
        assert results[:5] == [n, n**2, n**3, math.floor(n * 0.6), math.floor(n * -0.6)]
        assert torch.allclose(results[5], torch.ones(n) / n**2)


def test_powers_that_are_no_products_are_refused_with_their_line():
    class Root(nn.Module):
        def forward(self, x):
            return x / x.shape[0] ** 0.5

    program = _edge(Root(), (torch.ones(4),), ({0: Dim("n", min=1, max=9)},))
    with pytest.raises(ExportError, match="no operator for .*pow") as caught:
        EdgeToBackendOpsPass()(program.graph_module)
    assert "x / x.shape[0] ** 0.5" in str(caught.value)


def test_functions_of_python_on_tensors_are_refused_by_name():
    def add_one(graph_module):
        (relu,) = [n for n in graph_module.graph.nodes if n.op == "call_function"]
        with graph_module.graph.inserting_after(relu):
            total = graph_module.graph.call_function(operator.add, (relu, 1))
        total.meta = dict(relu.meta)
        relu.replace_all_uses_with(total)
        total.args = (relu, 1)

    program = to_edge(export(nn.ReLU(), (torch.ones(3),)))
    with pytest.raises(ExportError, match="add = .*function add>: .* on aten_relu_default, a tens"):
        program.to_executorch(ExecutorchBackendConfig(passes=[add_one]))


def test_sizes_of_the_example_are_planned_on_request():
    exported = export(_Pool().eval(), (torch.randn(1, 3, 8, 8),), dynamic_shapes=None)
    assert exported is not None
    unbounded = export(nn.ReLU(), (torch.randn(5, 2),), dynamic_shapes=({0: Dim("n")},))
    config = ExecutorchBackendConfig(sym_shape_eval_pass=HintBasedSymShapeEvalPass())
    plan = to_edge(unbounded).to_executorch(config).executorch_program.execution_plan[0]
    assert plan.values[plan.inputs[0]].val.sizes == [5, 2]


def test_planned_graph_prints_allocations_and_runs_in_python():
    model = nn.Linear(4, 3).eval()
    x = torch.randn(2, 4)
    program = to_edge(export(model, (x,))).to_executorch().exported_program()
    assert any(n.target is memory.alloc for n in program.graph.nodes)
    assert "executorch_exir_memory_alloc" in program.graph_module.code
    flat = [p.detach() for p in (model.bias, model.weight.T)]
    assert torch.allclose(program.graph_module(*flat, x)[0], model(x))


def test_default_view_removal_can_be_switched_off():
    class View(nn.Module):
        def forward(self, x):
            return (x * 2.0).view(-1).sin()

    config = ExecutorchBackendConfig(remove_view_copy=False)
    manager = to_edge(export(View(), (torch.randn(2, 2),))).to_executorch(config)
    assert "aten::view_copy.out" in _operators(manager.exported_program())
