import torch

from executorch.exir.passes import RemoveToCopyPass
from executorch.exir.testing import hand_made, targets

aten = torch.ops.aten


def after(dtype, then=aten.relu.default):
    def build(call, x):
        y = call(aten._to_copy.default, x, dtype=dtype)
        return call(then, y) if then else y

    return targets(RemoveToCopyPass()(hand_made(build, torch.ones(2))).graph_module)


def test_cast_to_the_same_dtype_goes():
    assert after(torch.float32) == ["aten.relu.default"]


def test_cast_to_another_dtype_stays():
    assert after(torch.int32) == ["aten._to_copy.default", "aten.relu.default"]


def test_copy_between_input_and_output_stays():
    assert after(torch.float32, then=None) == ["aten._to_copy.default"]
