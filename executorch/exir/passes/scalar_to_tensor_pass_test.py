import torch

from executorch.exir.passes import ScalarToTensorPass
from executorch.exir.testing import core_graph


def constants(gm):
    return {n.target: getattr(gm, n.target) for n in gm.graph.nodes if n.op == "get_attr"}


def run(function, *args):
    gm = core_graph(function, *args)
    result = ScalarToTensorPass()(gm)
    assert result.modified
    return result.graph_module


def test_integer_beside_floats_becomes_a_float_constant():
    x = torch.randn(3)
    gm = run(lambda x: x + 1, x)
    (constant,) = constants(gm).values()
    assert constant.dtype == torch.float32 and constant.shape == ()
    torch.testing.assert_close(gm(x)[0], x + 1)


def test_integer_beside_integers_stays_integer():
    x = torch.arange(3, dtype=torch.int32)
    gm = run(lambda x: x * 7, x)
    (constant,) = constants(gm).values()
    assert constant.dtype == torch.int32
    assert torch.equal(gm(x)[0], x * 7)


def test_float_beside_integers_becomes_float32():
    (constant,) = constants(run(lambda x: x + 1.5, torch.arange(3))).values()
    assert constant.dtype == torch.float32


def test_operands_that_are_scalars_by_schema_stay():
    gm = core_graph(lambda x: torch.clamp(x, 0, 1), torch.randn(3))
    assert not ScalarToTensorPass()(gm).modified
