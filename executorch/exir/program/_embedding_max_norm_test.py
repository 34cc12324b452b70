import pytest
import torch
from torch import nn
from torch.export import Dim, export

from executorch.exir import to_edge
from executorch.exir.error import ExportError
from executorch.runtime import Runtime


def results(module, *args, dynamic_shapes=None):
    program = export(module, args, dynamic_shapes=dynamic_shapes)
    edge = to_edge(program)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    return method.execute(list(args))


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
def test_rows_that_are_read_are_scaled_as_in_eager(norm_type):
    torch.manual_seed(0)
    module = nn.Embedding(10, 4, max_norm=1.5, norm_type=norm_type).eval()
    tokens = torch.tensor([[1, 2, 3], [3, 9, 1]])
    ours = results(module, tokens)[0]
    before = module.weight.detach().clone()
    eager = module(tokens)
    assert not torch.equal(module.weight, before)  # some rows are beyond the norm
    assert torch.equal(module.weight[0], before[0])
    torch.testing.assert_close(ours, eager)


def test_one_embedding_reads_twice_and_its_length_is_dynamic():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 8, max_norm=0.5)

        def forward(self, a, b):
            return self.embedding(a) * self.embedding(b).sum(0)

    torch.manual_seed(1)
    module = Pair().eval()
    args = (torch.tensor([0, 5, 5]), torch.tensor([5, 19]))
    dims = ({0: Dim("n", max=16)}, {0: Dim("m", max=16)})
    torch.testing.assert_close(results(module, *args, dynamic_shapes=dims)[0], module(*args))


def test_weights_that_something_else_reads_are_refused_with_name_and_line():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 8, max_norm=0.5)

        def forward(self, tokens):
            return self.embedding(tokens) @ self.embedding.weight.t()

    program = export(Tied().eval(), (torch.tensor([1, 2]),))
    with pytest.raises(ExportError, match=r"max_norm=0.5 changes its weights .*embedding_weight"):
        to_edge(program)


def test_the_program_given_stays_as_it_is():
    program = export(nn.Embedding(10, 4, max_norm=1.0).eval(), (torch.tensor([1]),))
    before = str(program.graph)
    to_edge(program)
    assert str(program.graph) == before
