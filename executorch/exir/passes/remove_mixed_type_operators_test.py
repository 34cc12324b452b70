import pytest
import torch

from executorch.exir.passes import RemoveMixedTypeOperators
from executorch.exir.testing import core_graph, targets

INTS = torch.tensor([1, 2, -3])
FLOATS = torch.tensor([0.5, 1.5, 2.5])


@pytest.mark.parametrize("op", [torch.add, torch.sub, torch.mul, torch.div, torch.minimum])
def test_mixed_operands_are_cast_to_the_promoted_dtype(op):
    gm = core_graph(op, INTS, FLOATS)
    gm = RemoveMixedTypeOperators()(gm).graph_module
    call = gm.graph.output_node().args[0][0]
    assert {n.meta["val"].dtype for n in call.all_input_nodes} == {torch.float32}
    torch.testing.assert_close(gm(INTS, FLOATS)[0], op(INTS, FLOATS))


def test_true_division_of_integers_is_done_in_floats():
    gm = RemoveMixedTypeOperators()(core_graph(torch.div, INTS, INTS)).graph_module
    assert targets(gm).count("aten._to_copy.default") == 2
    torch.testing.assert_close(gm(INTS, INTS)[0], INTS / INTS)


def test_floor_division_of_integers_stays_integer():
    gm = core_graph(lambda a, b: torch.div(a, b, rounding_mode="floor"), INTS, INTS)
    assert not RemoveMixedTypeOperators()(gm).modified


def test_equal_dtypes_stay():
    assert not RemoveMixedTypeOperators()(core_graph(torch.add, INTS, INTS)).modified
