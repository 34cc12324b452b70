import pytest
import torch

from executorch.exir import to_edge
from executorch.exir.capture._callable import as_module
from executorch.exir.passes import RemoveNoopPass
from executorch.exir.testing import core_graph, hand_made, targets

aten = torch.ops.aten


def after(gm):
    return targets(RemoveNoopPass()(gm).graph_module)


def test_slice_of_everything_goes():
    gm = core_graph(lambda x: x[:, 0:9999].relu(), torch.randn(2, 3))
    assert after(gm) == ["aten.relu.default"]


def test_slice_of_a_part_stays():
    gm = core_graph(lambda x: x[:, 1:].relu(), torch.randn(2, 3))
    assert after(gm) == ["aten.slice_copy.Tensor", "aten.relu.default"]


def test_slice_of_a_whole_dynamic_dimension_goes():
    shapes = ({0: torch.export.Dim("n", max=9)},)
    gm = core_graph(lambda x: x[: x.shape[0]].relu(), torch.randn(4, 3), dynamic_shapes=shapes)
    assert "aten.slice_copy.Tensor" not in after(gm)


def test_expansion_to_the_same_shape_goes():
    gm = core_graph(lambda x: x.expand(2, 3).relu(), torch.randn(2, 3))
    assert after(gm) == ["aten.relu.default"]


def test_expansion_to_another_shape_stays():
    gm = core_graph(lambda x: x.expand(4, 3).relu(), torch.randn(1, 3))
    assert after(gm) == ["aten.expand_copy.default", "aten.relu.default"]


def test_dropout_outside_of_training_goes():
    gm = hand_made(
        lambda call, x: call(aten.relu.default, call(aten.clone.default, x)), torch.ones(2)
    )
    assert after(gm) == ["aten.relu.default"]


def test_copy_of_an_input_to_an_output_stays():
    gm = core_graph(lambda x: x.clone(), torch.randn(2))
    assert after(gm) == ["aten.clone.default"]


def test_second_output_with_the_same_content_stays():
    def two(x):
        y = x.relu()
        return y, y.clone()

    assert after(core_graph(two, torch.randn(2))) == ["aten.relu.default", "aten.clone.default"]


def test_change_of_layout_stays():
    gm = core_graph(
        lambda x: x.to(memory_format=torch.channels_last).relu(), torch.randn(1, 2, 3, 4)
    )
    assert len(after(gm)) == 2


WRITES = {
    "silu": lambda x, z: torch.nn.functional.silu(x + z, inplace=True) * 2,
    "fresh": lambda x, z: (x + 1).copy_(z * 2).mul_(3),
    "both written": lambda x, z: ((y := z * 2), (x + 1).copy_(y).mul_(3), y.add_(1))[1:],
    "input": lambda x, z: ((x + 1).copy_(z).mul_(3), z),
    "view": lambda x, z: (x + 1).copy_((z * 2).view(x.shape)).mul_(3),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_a_copy_into_a_tensor_of_the_same_layout_is_its_source(name, dynamic):
    x, z = torch.randn(3, 4), torch.randn(3, 4)
    shapes = ({0: torch.export.Dim("n", min=2, max=9)},) * 2 if dynamic else None
    program = torch.export.export(as_module(WRITES[name]), (x, z), dynamic_shapes=shapes)
    edge = to_edge(program).exported_program()
    assert "aten.copy.default" not in targets(edge.graph_module)
    torch.testing.assert_close(edge.module()(x, z.clone()), WRITES[name](x, z.clone()))


@pytest.mark.parametrize("source", [torch.randn(4), torch.arange(12).view(3, 4)])
def test_a_copy_that_changes_shape_or_dtype_stays(source):
    gm = core_graph(lambda x, y: (x + 1).copy_(y).relu(), torch.randn(3, 4), source)
    assert "aten.copy.default" in after(gm)
