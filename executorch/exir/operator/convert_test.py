import pytest
import torch
from torch.library import Library

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.operator import convert
from executorch.exir.operator.util import gen_out_variant_schema

_aten = torch.ops.aten


def test_out_variant_computes_the_same():
    out, names = convert.to_out_variant(_aten.topk.default)
    assert (out, names) == (_aten.topk.values, ("values", "indices"))
    x = torch.randn(5, 7)
    results = (torch.empty(0), torch.empty(0, dtype=torch.int64))
    out(x, 3, **dict(zip(names, results, strict=True)))
    for found, wanted in zip(results, torch.topk(x, 3), strict=True):
        assert torch.equal(found, wanted)


def test_out_variant_of_an_out_variant_is_itself():
    assert convert.to_out_variant(_aten.relu.out) == (_aten.relu.out, ("out",))


def test_operator_without_out_variant_is_refused():
    with pytest.raises(RuntimeError, match="no out variant"):
        convert.to_out_variant(_aten.sym_size.int)
    with pytest.raises(ValueError, match="expected an out variant"):
        convert.get_out_args_from_opoverload(_aten.relu.default)


def test_operator_that_writes_into_an_argument_has_an_out_variant():
    library = Library("convert_test", "DEF")
    library.define("count(Tensor x, Tensor(a!) state) -> Tensor")
    library.define("count.out(Tensor x, Tensor(a!) state, *, Tensor(b!) out) -> Tensor(b!)")
    op = torch.ops.convert_test.count
    assert convert.to_out_variant(op.default) == (op.out, ("out",))


def test_names_tell_what_an_operator_writes():
    assert convert.is_out_variant("aten::topk", "values")
    assert not convert.is_out_variant("aten::topk", "")
    assert convert.is_inplace_variant("aten::relu_", "")
    assert not convert.is_inplace_variant("aten::relu", "out")
    with pytest.raises(RuntimeError, match="namespace::name"):
        convert.get_op_overload("relu", "default")


def test_operator_is_unwrapped():
    add = _aten.add.Tensor
    for target in (add, exir_ops.edge.aten.add.Tensor, exir_ops.backend.aten.add.Tensor):
        assert convert.unwrap_op_overload(target) is add
    with pytest.raises(TypeError, match="expected an operator, found str"):
        convert.unwrap_op_overload("aten::add")


def test_result_is_the_argument_that_is_written():
    assert convert.output_to_aliased_input_map(_aten.add_.Tensor._schema) == {0: 0}
    assert convert.output_to_aliased_input_map(_aten.topk.values._schema) == {0: 5, 1: 6}
    assert convert.output_to_aliased_input_map(_aten.add.Tensor._schema) == {}
    assert convert.output_to_aliased_input_map(_aten.view.default._schema) == {}


@pytest.mark.parametrize(
    ("op", "out"),
    [
        (_aten.mul.Scalar, _aten.mul.Scalar_out),
        (_aten.add_.Scalar, _aten.add.Scalar_out),
        (_aten.relu.default, _aten.relu.out),
        (_aten.zeros.default, _aten.zeros.out),
        (_aten.relu.out, _aten.relu.out),
    ],
)
def test_schema_of_the_out_variant(op, out):
    assert gen_out_variant_schema(str(op._schema)) == str(out._schema)


def test_schema_of_the_out_variant_of_two_results():
    given = "ns::split(Tensor x) -> (Tensor a, Tensor b)"
    wanted = "ns::split.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1)"
    assert gen_out_variant_schema(given) == f"{wanted} -> (Tensor(a!), Tensor(b!))"
