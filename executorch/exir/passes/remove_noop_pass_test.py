import torch

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
