import pytest
import torch

from executorch.exir.passes import NormalizeTransposePass, ReplaceBrokenOpsWithFunctionalOpsPass
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import copy_variant
from executorch.exir.testing import hand_made, targets

aten = torch.ops.aten


@pytest.mark.parametrize(
    "view, copy",
    [
        (aten.permute.default, aten.permute_copy.default),
        (aten.split_with_sizes.default, aten.split_with_sizes_copy.default),
        (aten._reshape_alias.default, aten.view_copy.default),
        (aten.select.int, aten.select_copy.int),
        (aten.relu.default, None),
        (aten.relu_.default, None),
        (aten.permute_copy.default, None),
    ],
)
def test_copy_variant(view, copy):
    assert copy_variant(view) is copy


def test_values_downstream_learn_that_copies_are_contiguous():
    x = torch.randn(2, 3)
    gm = hand_made(
        lambda call, x: call(aten.relu.default, call(aten.permute.default, x, [1, 0])), x
    )
    gm = ReplaceBrokenOpsWithFunctionalOpsPass()(gm).graph_module
    assert targets(gm) == ["aten.permute_copy.default", "aten.relu.default"]
    assert gm.graph.output_node().args[0][0].meta["val"].stride() == (2, 1)
    torch.testing.assert_close(gm(x)[0], x.T.relu())


def test_t_becomes_t_copy():
    gm = hand_made(lambda call, x: call(aten.t.default, x), torch.randn(2, 3))
    assert targets(NormalizeTransposePass()(gm).graph_module) == ["aten.t_copy.default"]
