import torch

from executorch.exir.passes import PruneEmptyTensorsPass
from executorch.exir.testing import hand_made, targets

cat = torch.ops.aten.cat.default


def run(*inputs):
    gm = hand_made(lambda call, *xs: call(cat, list(xs)), *inputs)
    return PruneEmptyTensorsPass()(gm).graph_module


def test_empty_operands_are_dropped():
    a, b = torch.randn(2, 3), torch.randn(1, 3)
    gm = run(a, torch.empty(0, 3), b)
    (node,) = gm.graph.find_nodes(op="call_function", target=cat)
    assert [str(n) for n in node.args[0]] == ["x0", "x2"]
    assert torch.equal(gm(a, None, b)[0], torch.cat([a, b]))


def test_only_empty_operands_become_zeros_of_their_shape():
    gm = run(torch.empty(0, 3), torch.empty(0, 3))
    assert targets(gm) == ["aten.full.default"]
    assert gm(None, None)[0].shape == (0, 3)
    (zeros,) = gm.graph.find_nodes(op="call_function", target=torch.ops.aten.full.default)
    modes = {n.meta["val"].fake_mode for n in (zeros, *gm.graph.find_nodes(op="placeholder"))}
    assert len(modes) == 1  # else no operation can have both as operands


def test_only_empty_complex_operands_stay():
    gm = run(torch.empty(0, dtype=torch.complex128), torch.empty(0, dtype=torch.complex128))
    assert targets(gm) == ["aten.cat.default"]


def test_empty_operand_that_decides_the_dtype_stays():
    gm = run(torch.arange(2), torch.empty(0))
    (node,) = gm.graph.find_nodes(op="call_function", target=cat)
    assert len(node.args[0]) == 2


def test_a_single_operand_takes_the_place_of_its_cat():
    x, relu = torch.randn(2, 3), torch.ops.aten.relu.default
    gm = hand_made(lambda call, a, b: call(relu, call(cat, [a, b])), x, torch.empty(0, 3))
    gm = PruneEmptyTensorsPass()(gm).graph_module
    assert targets(gm) == ["aten.relu.default"]
    assert torch.equal(gm(x, None)[0], x.relu())
    assert targets(run(x)) == ["aten.cat.default"]  # an output must not become an input
