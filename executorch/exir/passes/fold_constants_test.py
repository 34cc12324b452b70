import pytest
import torch
from torch.export import Dim

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.error import ExportError
from executorch.exir.graph.pass_driver import run_passes
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes.fold_constants import FoldConstants
from executorch.exir.testing import edge, targets


class Tied(torch.nn.Module):
    """One table, too large to be stored twice, read as it is and transposed."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(500, 32)

    def forward(self, i):
        return self.table(i) @ self.table.weight.T


class Lookup(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, i):
        return self.table(i)


class Project(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, x):
        return x @ self.table.weight.T


class Masked(torch.nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        return x.masked_fill(torch.arange(n) > torch.arange(n).view(-1, 1), 0.0)


class Narrow(torch.nn.Module):
    """A weight in float8 whose floats take more than a folded result may add to the file."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(80, 160).to(torch.float8_e4m3fn))

    def forward(self, x):
        return x @ self.weight.T.to(torch.float32)


class Standardized(torch.nn.Conv2d):
    """A convolution whose weights are standardized, by an operator of three results."""

    def forward(self, x):
        rows = self.weight.reshape(1, self.out_channels, -1)
        rows = torch.nn.functional.batch_norm(rows, None, None, training=True)
        return self._conv_forward(x, rows.reshape_as(self.weight), self.bias)


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(3)


class Stateful(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count += 1
        return x + self.count * 2


class Returned(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x, self.weight + 1


def test_transposed_weight_is_stored_transposed_without_a_copy():
    linear, x = torch.nn.Linear(3, 4), torch.randn(2, 3)
    program = edge(linear, x)
    assert FoldConstants()(program).modified
    assert targets(program) == ["aten.addmm.default"]
    (weight,) = program.constants.values()
    assert weight.shape == (3, 4) and weight.data_ptr() == linear.weight.data_ptr()
    torch.testing.assert_close(program.module()(x), linear(x))
    program.validate()


def test_the_written_weight_is_transposed():
    linear = torch.nn.Linear(300, 40, bias=False)
    program = to_edge(torch.export.export(linear, (torch.randn(1, 300),))).to_executorch()
    assert linear.weight.detach().T.contiguous().numpy().tobytes() in program.buffer


def test_programs_given_stay_as_they_are():
    exported = torch.export.export(torch.nn.Linear(3, 4), (torch.randn(2, 3),))
    to_edge(exported).to_executorch()
    assert set(exported.state_dict) == {"weight", "bias"}


def test_table_with_another_reader_is_not_stored_twice():
    program = edge(Tied(), torch.tensor([1, 2]))
    FoldConstants()(program)
    assert "aten.permute_copy.default" in targets(program)


def test_table_that_another_method_reads_is_not_stored_twice():
    table = torch.nn.Embedding(500, 32)
    lookup = edge(Lookup(table), torch.tensor([1]))
    project = edge(Project(table), torch.randn(2, 32))
    run_passes([ProgramView(lookup), ProgramView(project)], [FoldConstants()])
    assert "aten.permute_copy.default" in targets(project)


def test_weight_that_both_methods_transpose_is_stored_once():
    linear = torch.nn.Linear(64, 128)
    shapes = ({0: Dim("n", max=8)},)
    programs = {
        "one": torch.export.export(linear, (torch.randn(1, 64),)),
        "some": torch.export.export(linear, (torch.randn(4, 64),), dynamic_shapes=shapes),
    }
    program = to_edge(programs).to_executorch()
    stored = program.executorch_program.constant_buffer
    assert sum(b.storage.nbytes == linear.weight.nbytes for b in stored) == 1


def test_small_results_of_no_inputs_are_stored():
    program = edge(Masked(), torch.randn(4, 4))
    FoldConstants()(program)
    assert "aten.arange.start_step" not in targets(program)
    x = torch.randn(4, 4)
    torch.testing.assert_close(program.module()(x), Masked()(x))


def test_large_masks_stay_computed():
    program = edge(Masked(), torch.randn(256, 256))
    FoldConstants()(program)
    assert "aten.gt.Tensor" in targets(program)


def test_large_float8_weights_are_stored_as_the_floats_they_are_converted_to():
    torch.manual_seed(0)  # sums of 160 products are rounded in another order
    model, x = Narrow(), torch.randn(2, 160)
    program = edge(model, x)
    FoldConstants()(program)
    assert targets(program) == ["aten.mm.default"]
    stored = (program.state_dict | program.constants).values()
    assert {tensor.dtype for tensor in stored} == {torch.float32}
    torch.testing.assert_close(program.module()(x), model(x))


@pytest.mark.filterwarnings("ignore:.*in training mode")
def test_the_only_result_that_is_read_of_several_is_stored():
    model, x = Standardized(3, 8, 3), torch.randn(1, 3, 6, 6)
    program = edge(model, x)
    FoldConstants()(program)
    assert targets(program) == ["aten.convolution.default"]
    torch.testing.assert_close(program.module()(x), model(x))


def test_only_the_operands_asked_for_are_computed():
    class Both(torch.nn.Linear):
        def forward(self, x):
            return torch.nn.functional.linear(x * self.bias.exp(), self.weight * 2)

    def weights(call):
        return call.args[1:2] if "mm" in str(call.target) else ()

    model, x = Both(4, 4), torch.randn(2, 4)
    program = edge(model, x)
    FoldConstants(weights)(program)
    assert targets(program) == ["aten.exp.default", "aten.mul.Tensor", "aten.mm.default"]
    torch.testing.assert_close(program.module()(x), model(x))


def test_random_numbers_are_no_constants():
    program = edge(Noise(), torch.randn(3))
    FoldConstants()(program)
    assert any("rand" in name for name in targets(program))


def test_buffers_that_change_are_no_constants():
    program = edge(Stateful(), torch.ones(2))
    before = [name for name in targets(program) if "full" not in name]
    FoldConstants()(program)
    assert [name for name in targets(program) if "full" not in name] == before


def test_outputs_stay_computed():
    program = edge(Returned(), torch.ones(2))
    FoldConstants()(program)
    assert "aten.add.Tensor" in targets(program)


def test_external_constants_keep_their_names():
    linear = torch.nn.Linear(3, 4)
    config = ExecutorchBackendConfig(external_constants=True)
    program = to_edge(torch.export.export(linear, (torch.randn(2, 3),))).to_executorch(config)
    (names_in_file,) = program._emitter_output.external_constant_map.values()
    assert set(names_in_file) == {"weight", "bias"}


def test_weights_that_are_trained_stay_as_they_are():
    from torch.export.experimental import _export_forward_backward

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x, target):
            return torch.nn.functional.mse_loss(self.linear(x), target)

    exported = torch.export.export(Loss(), (torch.randn(1, 3), torch.randn(1, 2)))
    program = to_edge(_export_forward_backward(exported)).exported_program()
    assert not FoldConstants()(program).modified
    assert set(program.state_dict) >= {"linear.weight", "linear.bias"}


def test_quantization_is_folded_and_dequantization_is_not():
    from torch.ao.quantization.fx import _decomposed  # noqa: F401 (defines the operators)

    class Quantized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(64, 64))

        def forward(self, x):
            q = torch.ops.quantized_decomposed
            scaled = q.quantize_per_tensor(self.w, 0.1, 0, -128, 127, torch.int8)
            return x @ q.dequantize_per_tensor(scaled, 0.1, 0, -128, 127, torch.int8)

    program = edge(Quantized(), torch.randn(1, 64))
    FoldConstants()(program)
    assert "quantized_decomposed.quantize_per_tensor.default" not in targets(program)
    assert "quantized_decomposed.dequantize_per_tensor.default" in targets(program)
    stored = [t for t in (program.state_dict | program.constants).values() if t.numel() > 1]
    assert [t.dtype for t in stored] == [torch.int8]


def test_error_of_a_kernel_names_the_line():
    class Looks(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(3, 2))

        def forward(self, x):
            return x + torch.embedding(self.table, torch.arange(3, 6))

    program = edge(Looks(), torch.randn(1, 2))
    with pytest.raises(ExportError, match=r"embedding.*index out of range.*\n.*self.table, torch."):
        FoldConstants()(program)
