import torch

from executorch.exir import to_edge


def test_transposed_weight_is_stored_contiguously():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(3, 2).T)

        def forward(self, x):
            return (x * self.w).reshape(6) * 2

    model, x = Model(), torch.randn(2, 3)
    program = to_edge(torch.export.export(model, (x,))).exported_program()
    torch.testing.assert_close(program.module()(x), model(x))
    assert program.state_dict["w"].is_contiguous() and not model.w.is_contiguous()
    (node,) = [n for n in program.graph.nodes if n.name == "p_w"]
    assert node.meta["val"].stride() == (3, 1)


def test_channels_last_weight_stays():
    conv = torch.nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last)
    program = to_edge(torch.export.export(conv, (torch.randn(1, 2, 4, 4),))).exported_program()
    assert program.state_dict["weight"].is_contiguous(memory_format=torch.channels_last)
