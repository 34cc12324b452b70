import pytest
import torch
from torch import nn
from torch.export import Dim

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.graph.pass_driver import run_passes
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes.addmm_to_linear import AddmmToLinear
from executorch.exir.passes.fold_constants import FoldConstants
from executorch.exir.testing import edge, targets
from executorch.runtime import Runtime

ADDMM, MM, LINEAR = "aten.addmm.default", "aten.mm.default", "aten.linear.default"
PERMUTE = "aten.permute_copy.default"
K, N = 512, 640  # 1.25 MiB in float32


class Function(nn.Module):
    """`compute(x, weight, bias)` with the parameters of a layer or of a Conv1D."""

    def __init__(self, compute, shape=(K, N), bias=(N,)):
        super().__init__()
        self.compute = compute
        self.weight = nn.Parameter(torch.randn(shape) / 16)
        self.bias = nn.Parameter(torch.randn(bias))

    def forward(self, x):
        return self.compute(x, self.weight, self.bias)


class Tied(nn.Module):
    """A vocabulary that embeds tokens and scores them."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(2000, 256)

    def forward(self, tokens):
        return self.table(tokens) @ self.table.weight.T


def conv1d(x, weight, bias):
    return torch.addmm(bias, x, weight)


def passed(*programs):
    """Run the pass on methods given together, as to_executorch does."""
    views = [ProgramView(program) for program in programs]
    run_passes(views, [FoldConstants(), AddmmToLinear()])
    for program in programs:
        program.validate()


def lowered(model, x):
    program = edge(model, x)
    passed(program)
    torch.testing.assert_close(program.module()(x), model(x))
    return targets(program)


def calls(program):
    return [n for n in program.graph.nodes if n.op == "call_function"]


def x_of(rows=3, k=K):
    return torch.randn(rows, k)


@pytest.mark.parametrize("bias", [True, False])
def test_layers_keep_their_weights_as_they_are(bias):
    layer = nn.Linear(K, N, bias)
    program, x = edge(layer, x_of()), x_of()
    passed(program)
    assert targets(program) == [LINEAR]
    (call,) = calls(program)
    assert len(call.args) == 2 + bias
    assert call.args[1].meta["val"].is_contiguous()
    stored = next(t for t in program.constants.values() if t.dim() == 2)
    assert stored.shape == (N, K) and stored.data_ptr() == layer.weight.data_ptr()
    torch.testing.assert_close(program.module()(x), layer(x))


def test_weights_of_a_conv1d_are_transposed_without_a_copy():
    model, x = Function(conv1d), x_of()
    program = edge(model, x)
    passed(program)
    assert targets(program) == [LINEAR]
    (stored,) = program.constants.values()
    assert torch.equal(stored, model.weight.T) and stored.data_ptr() == model.weight.data_ptr()
    torch.testing.assert_close(program.module()(x), model(x))
    written = to_edge(torch.export.export(model, (x,))).to_executorch().buffer
    assert model.weight.detach().T.contiguous().numpy().tobytes() in written


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, w, b: torch.addmm(b, x, torch.t_copy(w)),
        lambda x, w, b: torch.addmm(b, x, torch.transpose_copy(w, 0, 1)),
        lambda x, w, b: torch.addmm(b, x, torch.permute_copy(w, (-1, 0))),
        lambda x, w, b: x @ w.T,
    ],
)
def test_every_transpose_of_a_weight_with_another_reader_goes(compute):
    model, x = Function(lambda x, w, b: compute(x, w, b) + (w * x[0, 0]).sum(), (N, K)), x_of()
    kept = [torch.ops.aten.t_copy.default, torch.ops.aten.transpose_copy.int]
    config = EdgeCompileConfig(preserve_ops=kept)
    program = to_edge(torch.export.export(model, (x,)), compile_config=config).exported_program()
    passed(program)
    called = targets(program)
    assert LINEAR in called
    assert not any(name in called for name in (MM, ADDMM, PERMUTE))
    assert "aten.t_copy.default" not in called and "aten.transpose_copy.int" not in called
    torch.testing.assert_close(program.module()(x), model(x))


def test_a_permute_that_is_no_transpose_stays():
    square = Function(lambda x, w, b: x @ torch.permute_copy(w, (0, 1)) + w * x[0, 0], (K, K), (K,))
    assert MM in lowered(square, x_of(K))


def test_a_transpose_with_another_reader_stays_for_it():
    def compute(x, w, b):
        transposed = w.T
        return torch.addmm(b, x, transposed) + transposed * x[0, 0] + (w * x[0, 0]).sum()

    called = lowered(Function(compute, (N, K)), x_of(K))
    assert LINEAR in called and PERMUTE in called


def test_a_tied_vocabulary_is_read_in_place():
    program, tokens = edge(Tied(), torch.tensor([1, 2])), torch.tensor([3, 5])
    passed(program)
    assert targets(program) == ["aten.embedding.default", LINEAR]
    embedding, product = calls(program)
    assert product.args == (embedding, embedding.args[0])
    assert program.module()(tokens).shape == (2, 2000)


def test_a_tied_vocabulary_needs_no_memory_for_its_transpose():
    exported = torch.export.export(Tied(), (torch.tensor([1, 2]),))
    sizes = []
    for emit_linear in (False, True):
        config = ExecutorchBackendConfig(emit_linear=emit_linear)
        program = to_edge(exported).to_executorch(config).executorch_program
        sizes.append(program.execution_plan[0].non_const_buffer_sizes[1])
    assert sizes[0] - sizes[1] >= 2000 * 256 * 4


def test_a_layer_behind_another_reads_its_result():
    model = nn.Sequential(nn.Linear(K, N), nn.Linear(N, K, bias=False), nn.Linear(K, N))
    assert lowered(model, x_of()) == [LINEAR, LINEAR, LINEAR]


def test_one_weight_of_several_products_is_stored_once():
    def compute(x, w, b):
        return torch.addmm(b, x, w) * (x @ w)

    program = edge(Function(compute), x_of())
    passed(program)
    assert targets(program).count(LINEAR) == 2
    assert len(program.constants) == 1


@pytest.mark.parametrize(
    ("compute", "bias"),
    [
        (lambda x, w, b: torch.addmm(b, x, w, beta=2), (N,)),
        (lambda x, w, b: torch.addmm(b, x, w, alpha=0.5), (N,)),
        (lambda x, w, b: torch.addmm(b, x, w), (1,)),
        (lambda x, w, b: torch.addmm(b, x, w), ()),
        (lambda x, w, b: torch.addmm(b, x, w), (1, N)),
        (lambda x, w, b: torch.addmm(b, x, w), (3, N)),
    ],
)
def test_biases_that_a_layer_does_not_have_are_left(compute, bias):
    assert ADDMM in lowered(Function(compute, bias=bias), x_of())


def test_a_bias_that_is_computed_is_one():
    assert LINEAR in lowered(Function(lambda x, w, b: torch.addmm(b.abs() + x[0, 0], x, w)), x_of())


def test_a_constant_that_something_else_reads_is_left():
    assert lowered(Function(lambda x, w, b: x @ w + (w * x[0, 0]).sum()), x_of()).count(MM) == 1
    square = Function(lambda x, w, b: x @ w @ w.T, (K, N))
    assert set(lowered(square, x_of())) >= {MM, LINEAR}


def test_a_constant_times_itself_is_left():
    program = edge(Function(lambda x, w, b: (w @ w) * x, (K, K), (K,)), x_of(1))
    run_passes([ProgramView(program)], [AddmmToLinear()])
    assert MM in targets(program)


def test_operands_of_the_caller_are_left():
    class Product(nn.Module):
        def forward(self, x, y):
            return x @ y + x @ y.T

    program = edge(Product(), torch.randn(K, K), torch.randn(K, K))
    passed(program)
    assert LINEAR not in targets(program)


def test_buffers_that_change_are_left():
    class Learns(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randn(N, K))

        def forward(self, x):
            result = x @ self.weight.T
            self.weight.mul_(0.5)
            return result

    program = edge(Learns(), x_of())
    passed(program)
    assert MM in targets(program)


@pytest.mark.parametrize(("dtype", "n"), [(torch.float32, 512), (torch.bfloat16, 1024)])
def test_the_smallest_large_weight_has_one_mebibyte(dtype, n):
    for outputs, expected in ((n, LINEAR), (n - 1, ADDMM)):
        program = edge(nn.Linear(512, outputs).to(dtype), x_of().to(dtype))
        passed(program)
        assert targets(program) == [expected]


def test_other_types_are_left():
    assert lowered(nn.Linear(K, N).double(), x_of().double()) == [ADDMM]


def test_methods_that_share_a_weight_store_it_once():
    model = Function(conv1d)
    shapes = ({0: Dim("rows", max=8)},)
    programs = {
        "one": torch.export.export(model, (x_of(1),)),
        "some": torch.export.export(model, (x_of(4),), dynamic_shapes=shapes),
    }
    manager = to_edge(programs).to_executorch()
    for name in programs:
        assert "aten.linear.out" in targets(manager.exported_program(name))
    stored = manager.executorch_program.constant_buffer
    assert sum(b.storage.nbytes == model.weight.nbytes for b in stored) == 1
    program = Runtime.get().load_program(manager.buffer)
    for name, rows in (("one", 1), ("some", 7)):
        x = x_of(rows)
        (result,) = program.load_method(name).execute((x,))
        torch.testing.assert_close(result, model(x))


def test_a_constant_that_another_method_reads_is_left():
    model = Function(conv1d)
    summed = Function(lambda x, w, b: x + (w * x[0, 0]).sum())
    summed.weight = model.weight
    programs = edge(model, x_of()), edge(summed, x_of())
    passed(*programs)
    assert targets(programs[0]) == [ADDMM]


def test_a_table_that_another_method_reads_is_read_in_place():
    layer = nn.Linear(K, N, bias=False)
    summed = Function(lambda x, w, b: x + (w * x[0, 0]).sum())
    summed.weight = layer.weight
    programs = edge(layer, x_of()), edge(summed, x_of())
    passed(*programs)
    assert targets(programs[0]) == [LINEAR]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "make", [lambda: nn.Linear(768, 1024), lambda: Function(conv1d, (768, 1024), (1024,))]
)
def test_programs_compute_what_eager_does(make, dtype):
    model = make().to(dtype)
    shapes = ({0: Dim("rows", max=64)},)
    exported = torch.export.export(model, (x_of(4, 768).to(dtype),), dynamic_shapes=shapes)
    manager = to_edge(exported).to_executorch()
    assert "aten.linear.out" in targets(manager.exported_program())
    method = Runtime.get().load_program(manager.buffer).load_method("forward")
    for rows in (1, 5, 16, 64):
        x = x_of(rows, 768).to(dtype)
        (result,) = method.execute((x,))
        torch.testing.assert_close(result, model(x))


def test_products_of_one_row_or_column_compute_what_eager_does():
    for shape in ((1, 300_000), (300_000, 1)):
        for transposed in (False, True):
            model = Function(lambda x, w, b, t=transposed: x @ (w.T if t else w), shape)
            x = x_of(3, shape[transposed])
            manager = to_edge(torch.export.export(model, (x,))).to_executorch()
            assert "aten.linear.out" in targets(manager.exported_program())
            method = Runtime.get().load_program(manager.buffer).load_method("forward")
            torch.testing.assert_close(method.execute((x,))[0], model(x), rtol=1e-4, atol=1e-3)


def test_the_layer_is_the_products_successor():
    program = edge(nn.Linear(K, N), x_of())
    (product,) = [n for n in program.graph.nodes if n.name == "aten_addmm_default"]
    meta = dict(product.meta)
    passed(program)
    (layer,) = calls(program)
    assert layer.meta == meta and "debug_handle" in meta and "stack_trace" in meta


def test_the_option_keeps_core_operators():
    exported = torch.export.export(nn.Linear(K, N), (x_of(),))
    for emit_linear, operator in ((True, "aten.linear.out"), (False, "aten.addmm.out")):
        config = ExecutorchBackendConfig(emit_linear=emit_linear)
        manager = to_edge(exported).to_executorch(config)
        assert operator in targets(manager.exported_program())


def test_external_weights_stay_as_they_are():
    exported = torch.export.export(nn.Linear(K, N), (x_of(),))
    config = ExecutorchBackendConfig(external_constants=True)
    manager = to_edge(exported).to_executorch(config)
    assert "aten.addmm.out" in targets(manager.exported_program())


def test_weights_that_are_trained_stay_as_they_are():
    from torch.export.experimental import _export_forward_backward

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(K, N)

        def forward(self, x, target):
            return nn.functional.mse_loss(self.layer(x), target)

    exported = torch.export.export(Loss(), (x_of(), torch.randn(3, N)))
    program = to_edge(_export_forward_backward(exported)).exported_program()
    assert not AddmmToLinear()(program).modified


def test_branches_are_left():
    class Chooses(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(K, N)

        def forward(self, x):
            return torch.cond(x.sum() > 0, self.layer, lambda x: self.layer(x) + 1, (x,))

    program = edge(Chooses(), x_of())
    passed(program)
    modules = [m for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    called = [name for module in modules for name in targets(module)]
    assert called.count(ADDMM) == 2 and LINEAR not in called


def test_a_dequantized_weight_is_read_as_it_is():
    from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_

    x = torch.randn(2, 1, K)
    for config in (Int8WeightOnlyConfig(), IntxWeightOnlyConfig(weight_dtype=torch.int8)):
        layer = nn.Linear(K, N).eval()
        quantize_(layer, config)
        program = to_edge(torch.export.export(layer, (x,))).exported_program()
        passed(program)
        assert LINEAR in targets(program) and PERMUTE not in targets(program)
        # K terms, each rounded in another order, of products below 4
        expected, bound = layer(x).detach(), K * 2**-23 * 4
        torch.testing.assert_close(program.module()(x), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("reads", ["dequantized as it lies", "small", "computed"])
def test_other_computed_weights_stay(reads):
    rows, columns = (64, 64) if reads == "small" else (K, N)
    quantized = torch.randint(-128, 128, (columns, rows), dtype=torch.int8)
    dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default

    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", quantized)

        def forward(self, x):
            q = self.weight + x[0, 0].to(torch.int8) if reads == "computed" else self.weight
            w = dequantize(q, 1e-4, 0, -128, 127, torch.int8)
            return x.mT @ w if reads == "dequantized as it lies" else x @ w.mT

    x = torch.ones(columns, 2) if reads == "dequantized as it lies" else torch.ones(2, rows)
    assert LINEAR not in lowered(Product(), x)
