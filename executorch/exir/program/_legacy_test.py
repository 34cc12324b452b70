import pytest
import torch

import executorch.exir as exir


def test_captured_function_goes_to_the_edge_dialect():
    program = exir.capture(lambda x: x.relu() + 1, (torch.ones(2),), exir.CaptureConfig())
    edge = program.to_edge(exir.EdgeCompileConfig())
    torch.testing.assert_close(edge(-torch.ones(2)), torch.ones(2))
    names = [n.target.__name__ for n in edge.graph_module.graph.nodes if n.op == "call_function"]
    assert names == ["aten.relu.default", "aten.add.Tensor"]


def test_executorch_needs_the_edge_dialect():
    with pytest.raises(RuntimeError, match="to_edge"):
        exir.capture(torch.nn.ReLU(), (torch.ones(2),)).to_executorch()


def test_several_methods():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x + 1

        def twice(self, x):
            return x * 2

    x = torch.ones(2)
    program = exir.capture_multiple(Model(), {"forward": (x,), "twice": (x,)}).to_edge()
    assert set(program.methods()) == {"forward", "twice"}
    torch.testing.assert_close(program.find_method("twice")(x), x * 2)
