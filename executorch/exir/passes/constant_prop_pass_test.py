import torch

from executorch.exir import to_edge
from executorch.exir.passes.constant_prop_pass import constant_prop_pass


def edge(module, *args):
    return to_edge(torch.export.export(module, args)).exported_program()


def names(program):
    return [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]


class Tied(torch.nn.Module):
    """One table read as it is and transposed."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(5, 3)

    def forward(self, i):
        return self.table(i) @ self.table.weight.T


class Stateful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count += 1
        return x + self.count * 2


def test_transposed_weight_is_stored_transposed():
    linear, x = torch.nn.Linear(3, 4), torch.randn(2, 3)
    program = edge(linear, x)
    constant_prop_pass(program)
    assert names(program) == ["aten.addmm.default"]
    assert list(program.state_dict) == ["bias"]
    assert [tuple(t.shape) for t in program.constants.values()] == [(3, 4)]
    torch.testing.assert_close(program.module()(x), linear(x))
    program.validate()


def test_constant_propagation_may_store_a_table_twice():
    model, i = Tied(), torch.tensor([1, 2])
    program = constant_prop_pass(edge(model, i))
    assert "aten.permute_copy.default" not in names(program)
    torch.testing.assert_close(program.module()(i), model(i))


def test_buffers_that_change_are_no_constants():
    program = edge(Stateful(), torch.ones(2))
    before = names(program)
    constant_prop_pass(program)
    assert names(program) == before


def test_skipped_targets_stay():
    from executorch.exir.dialects._ops import ops

    program = edge(torch.nn.Linear(3, 4), torch.randn(2, 3))
    constant_prop_pass(program, custom_skip_targets={ops.edge.aten.permute_copy.default})
    assert "aten.permute_copy.default" in names(program)
