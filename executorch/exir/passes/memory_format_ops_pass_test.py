import pytest
import torch

from executorch.exir.passes import MemoryFormatOpsPass, OpReplacePass
from executorch.exir.testing import hand_made, targets

aten = torch.ops.aten


def run(build, *inputs):
    gm = hand_made(build, *inputs)
    OpReplacePass()(gm)
    gm = MemoryFormatOpsPass()(gm).graph_module
    (node,) = [n for n in gm.graph.nodes if n.op == "call_function"]
    return gm, node


def test_memory_format_becomes_its_dim_order():
    x = torch.randn(1, 2, 3, 4)
    gm, node = run(
        lambda call, x: call(aten.clone.default, x, memory_format=torch.channels_last), x
    )
    assert targets(gm) == ["dim_order_ops._clone_dim_order.default"]
    assert node.kwargs == {"dim_order": [0, 2, 3, 1]}
    assert node.name.startswith("dim_order_ops__clone_dim_order_default")
    assert gm(x)[0].is_contiguous(memory_format=torch.channels_last)


def test_absent_format_becomes_the_dim_order_of_the_input():
    x = torch.randn(1, 2, 3, 4).to(memory_format=torch.channels_last)
    gm, node = run(lambda call, x: call(aten._to_copy.default, x, dtype=torch.float64), x)
    assert node.kwargs == {"dtype": torch.float64, "dim_order": [0, 2, 3, 1]}
    assert torch.equal(gm(x)[0], x.double())


def test_one_pixel_keeps_the_order_that_its_strides_tell():
    x = torch.empty(1, 8, 1, 1, memory_format=torch.channels_last)
    _, node = run(lambda call, x: call(aten._to_copy.default, x, dtype=torch.float64), x)
    assert node.kwargs["dim_order"] == [0, 2, 3, 1]
    _, node = run(lambda call, x: call(aten.clone.default, x), torch.empty(1, 8, 1, 1))
    assert node.kwargs["dim_order"] == [0, 1, 2, 3]


def test_scalar_has_an_empty_dim_order():
    _, node = run(lambda call, x: call(aten.clone.default, x), torch.tensor(1.0))
    assert node.kwargs["dim_order"] == []


def test_three_dimensional_channels_last_is_refused():
    x = torch.randn(1, 2, 3, 4, 5)
    with pytest.raises(ValueError, match="channels_last"):
        run(lambda call, x: call(aten.clone.default, x, memory_format=torch.channels_last_3d), x)
