import torch

from executorch.exir.testing import edge


class Arithmetic(torch.nn.Module):
    def forward(self, x):
        return (x + 2) * 2 + 3


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 2, lambda x: x - 2, (x,))


def test_constants_become_buffers_before_the_user_inputs():
    program = edge(Arithmetic(), torch.ones(2))
    kinds = [(s.kind.name, s.target) for s in program.graph_signature.input_specs]
    assert kinds == [
        ("BUFFER", "_lifted_tensor_constant0"),
        ("BUFFER", "_lifted_tensor_constant1"),
        ("USER_INPUT", None),
    ]
    assert program.state_dict["_lifted_tensor_constant1"].item() == 3


def test_equal_scalars_are_one_constant():
    assert len(edge(Arithmetic(), torch.ones(2)).state_dict) == 2


def test_branches_make_their_constants_themselves():
    program = edge(Branches(), torch.ones(2))
    assert not program.state_dict
    for x in (torch.ones(2), -torch.ones(2)):
        torch.testing.assert_close(program.module()(x), Branches()(x))
