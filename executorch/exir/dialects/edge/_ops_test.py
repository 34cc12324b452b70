import copy
import pickle

import pytest
import torch
from torch._subclasses import FakeTensorMode

from executorch.exir.dialects._ops import bind_pattern_to_op
from executorch.exir.dialects._ops import ops as exir_ops

edge = exir_ops.edge


def test_names():
    op = edge.aten.add.Tensor
    assert op.__name__ == "aten.add.Tensor"
    assert op.name() == "aten::add.Tensor"
    assert op.namespace == "aten"
    assert op._op is torch.ops.aten.add.Tensor
    assert "EdgeOpOverload: aten.add.Tensor" in str(op)
    assert edge.aten.add.__name__ == str(edge.aten.add) == "aten.add"


def test_printed_graphs_spell_the_dialect():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(edge.aten.add.Tensor, (x, x)))
    text = str(graph)
    assert "%aten_add_tensor" in text
    assert "target=executorch.exir.dialects.edge._ops.aten.add.Tensor" in text


def test_there_is_one_object_per_operator():
    op = edge.aten.add.Tensor
    assert op is exir_ops.edge.aten.add.Tensor
    assert copy.deepcopy(op) is copy.copy(op) is pickle.loads(pickle.dumps(op)) is op


def test_calls_compute():
    x = torch.randn(2, 3)
    assert torch.equal(edge.aten.permute_copy.default(x, [1, 0]), x.T)
    with FakeTensorMode() as mode:
        assert edge.aten.add.Tensor(mode.from_tensor(x), 1).shape == (2, 3)


@pytest.mark.parametrize(
    "name, out",
    [
        ("add.Tensor", "aten::add.out"),
        ("sum.dim_IntList", "aten::sum.IntList_out"),
        ("topk.default", "aten::topk.values"),
        ("max.dim", "aten::max.dim_max"),
        ("full.default", "aten::full.out"),
        ("gelu.default", "aten::gelu.out"),
        ("select_copy.int", "aten::select_copy.int_out"),
        ("split_with_sizes_copy.default", "aten::split_with_sizes_copy.out"),
        ("index_put.default", "aten::index_put.out"),
        ("full_like.default", "aten::full_like.out"),
    ],
)
def test_out_variant(name, out):
    packet, overload = name.split(".")
    op = getattr(getattr(edge.aten, packet), overload)
    assert op.to_out_variant().name() == out


def test_missing_out_variant_is_an_error_that_names_the_operator():
    with pytest.raises(RuntimeError, match="aten.dropout.default: no out variant"):
        edge.aten.dropout.default.to_out_variant()


def test_unknown_operator_is_an_attribute_error():
    with pytest.raises(AttributeError):
        _ = edge.aten.no_such_operator


def test_dim_order_operators():
    x = torch.randn(1, 2, 3, 4)
    y = edge.dim_order_ops._to_dim_order_copy.default(x, dtype=torch.int32, dim_order=[0, 2, 3, 1])
    assert y.stride() == (24, 1, 8, 2) and torch.equal(y, x.int())
    out = torch.empty(1, 2, 3, 4, dtype=torch.float64)
    clone = edge.dim_order_ops._clone_dim_order.default.to_out_variant()
    assert torch.equal(clone(x.double(), dim_order=[0, 1, 2, 3], out=out), x.double())
    assert edge.dim_order_ops._empty_dim_order.default([2, 3], dim_order=[0, 1]).shape == (2, 3)
    with pytest.raises(ValueError, match="neither contiguous"):
        edge.dim_order_ops._clone_dim_order.default(x, dim_order=[3, 2, 1, 0])


def test_backend_operator_computes_its_pattern():
    library = torch.library.Library("edge_ops_test", "DEF")

    @bind_pattern_to_op(library, "add_relu(Tensor x, Tensor y) -> Tensor")
    def add_relu(x, y):
        return edge.aten.relu.default(edge.aten.add.Tensor(x, y))

    op = exir_ops.backend.edge_ops_test.add_relu.default
    assert op._equivalent_callable is add_relu
    assert torch.equal(op(torch.tensor([-3.0]), torch.tensor([1.0])), torch.zeros(1))


def test_a_model_may_call_what_nobody_has_asked_for_before():
    class Model(torch.nn.Module):
        def forward(self, x):
            q = exir_ops.edge.quantized_decomposed
            return q.quantize_per_token.default(x, self.scale, self.zero, -128, 127, torch.int8)

    module, x = Model(), torch.randn(3, 4)
    module.scale, module.zero = torch.full((3, 1), 0.5), torch.zeros(3, 1)
    program = torch.export.export(module, (x,), strict=True)
    assert torch.equal(program.module()(x), module(x))
    assert edge.quantized_decomposed.quantize_per_token.default._schema.name.endswith("per_token")
