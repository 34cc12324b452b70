import torch

from executorch.exir.passes import SymToTensorPass
from executorch.exir.testing import core_graph, targets


def test_symbolic_size_becomes_a_tensor_of_the_dtype_it_takes():
    shapes = ({0: torch.export.Dim("n", max=9)},)
    gm = core_graph(lambda x: x * x.shape[0], torch.randn(4), dynamic_shapes=shapes)
    gm = SymToTensorPass()(gm).graph_module
    assert "aten.scalar_tensor.default" in targets(gm)
    (node,) = gm.graph.find_nodes(op="call_function", target=torch.ops.aten.scalar_tensor.default)
    assert node.meta["val"].dtype == torch.float32
    x = torch.randn(7)
    torch.testing.assert_close(gm(x)[0], x * 7)
