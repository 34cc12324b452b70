import torch
from torch.export.graph_signature import InputKind

from executorch.exir import to_edge
from executorch.exir.capture._callable import as_module
from executorch.exir.passes.constant_prop_pass import constant_prop_pass
from executorch.exir.testing import edge, targets


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
    assert targets(program) == ["aten.addmm.default"]
    assert list(program.state_dict) == ["bias"]
    assert [tuple(t.shape) for t in program.constants.values()] == [(3, 4)]
    torch.testing.assert_close(program.module()(x), linear(x))
    program.validate()


def test_constant_propagation_may_store_a_table_twice():
    model, i = Tied(), torch.tensor([1, 2])
    program = constant_prop_pass(edge(model, i))
    assert "aten.permute_copy.default" not in targets(program)
    torch.testing.assert_close(program.module()(i), model(i))


def test_buffers_that_change_are_no_constants():
    program = edge(Stateful(), torch.ones(2))
    before = targets(program)
    constant_prop_pass(program)
    assert targets(program) == before


def test_skipped_targets_stay():
    from executorch.exir.dialects._ops import ops

    program = edge(torch.nn.Linear(3, 4), torch.randn(2, 3))
    constant_prop_pass(program, custom_skip_targets={ops.edge.aten.permute_copy.default})
    assert "aten.permute_copy.default" in targets(program)


class Folds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.arange(6.0).reshape(1, 2, 3))

    def forward(self, x):
        b = torch.cat([self.a, self.a + self.a])
        return (b + b) + x


def test_graphs_of_torch_export_are_folded_and_stay_valid():
    program = torch.export.export(Folds(), (torch.ones(2, 2, 3),))
    assert constant_prop_pass(program) is program
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"] == [
        "aten.add.Tensor"
    ]
    spec, given = program.graph_signature.input_specs
    assert (spec.kind, spec.target, spec.persistent) == (
        InputKind.CONSTANT_TENSOR,
        "_prop_tensor_constant0",
        True,
    )
    assert given.kind is InputKind.USER_INPUT
    assert not program.state_dict and list(program.constants) == ["_prop_tensor_constant0"]
    program.validate()
    x = torch.randn(2, 2, 3)
    torch.testing.assert_close(program.module()(x), Folds()(x))
    assert to_edge(program).to_executorch().buffer


def test_expanded_constants_get_memory_of_their_own():
    def forward(x):
        return x + torch.tensor([[1.0], [2.0]]).expand(2, 3).sum(1)

    program = torch.export.export(as_module(forward), (torch.ones(2),))
    constant_prop_pass(program)
    torch.testing.assert_close(program.module()(torch.ones(2)), torch.tensor([4.0, 7.0]))


def test_memory_written_in_place_is_not_folded():
    class Fills(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            row = self.w * 2
            row.view(3)[0].copy_(x[0])
            return row

    program = torch.export.export(Fills(), (torch.ones(1),))
    constant_prop_pass(program)
    lowered = to_edge(program).exported_program().module()
    torch.testing.assert_close(lowered(torch.full((1,), 4.0)), torch.tensor([4.0, 2, 2]))


def test_written_constants_and_their_views_are_not_folded():
    class Writes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2, 2))

        def forward(self, x):
            before = self.state.view(4) + 1
            self.state.add_(x)
            return before + self.state.view(4)

    program = torch.export.export(Writes(), (torch.ones(1),))
    constant_prop_pass(program)
    module, eager = program.module(), Writes()
    for _ in range(2):
        torch.testing.assert_close(module(torch.ones(1)), eager(torch.ones(1)))


def test_dequantization_stays_in_both_dialects():
    import torch.ao.quantization.fx._decomposed  # noqa: F401

    class Quantized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.ones(3, 3, dtype=torch.int8))

        def forward(self, x):
            w = torch.ops.quantized_decomposed.dequantize_per_tensor(
                self.w, 0.5, 0, -128, 127, torch.int8
            )
            return x @ w

    program = constant_prop_pass(torch.export.export(Quantized(), (torch.ones(2, 3),)))
    assert any("dequantize" in str(n.target) for n in program.graph.nodes)


def test_control_flow_is_left_with_a_warning(caplog):
    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, p, x):
            y = x + (self.w + self.w)
            return torch.cond(p, lambda v: v + self.w * 2, lambda v: v - self.w, [y])

    args = (torch.tensor(True), torch.ones(2))
    program = edge(Branches(), *args)
    with caplog.at_level("WARNING"):
        constant_prop_pass(program)
    assert "control flow" in caplog.text
    torch.testing.assert_close(program.module()(*args), Branches()(*args))
