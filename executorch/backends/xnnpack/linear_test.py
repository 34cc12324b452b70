"""Linear layers in the forms that decomposition leaves, and conversions by themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

from executorch.backends.xnnpack.partition.config.gemm_configs import LinearConfig
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.serialization import _native
from executorch.exir import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import get_lowered_backend_modules
from executorch.runtime import Runtime
from tests.interop.xnnpack_cases import CASES, Case, quantized_pt2e
from tests.interop.xnnpack_test import tolerance


def computing_calls(edge: EdgeProgramManager) -> list[str]:
    """Of the whole program, but for what asks for sizes."""
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    names = [getattr(n.target, "__name__", str(n.target)) for n in calls]
    return [n for n in names if n not in ("getitem", "sym_size.int")]


def payload_kinds(edge: EdgeProgramManager) -> list[str]:
    modules = get_lowered_backend_modules(edge.exported_program().graph_module)
    payloads = [json.loads(_native.read_payload(m.processed_bytes)) for m in modules]
    return [n["xnode_union_type"].removeprefix("XNN") for p in payloads for n in p["xnodes"]]


def run(edge: EdgeProgramManager, *inputs: Tensor) -> Tensor:
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    result: Tensor = method.execute(inputs)[0].clone()
    return result


def layer(case: Case) -> nn.Module:
    return quantized_pt2e(case) if case.recipe.startswith("int8") else case.module.eval()


EXPECTED = {
    "rows": ["FullyConnected"],
    "rows_int8": ["Convert", "FullyConnected", "Convert"],
    "rows_int8_tensor": ["Convert", "FullyConnected", "Convert"],
    "rows_int8_dynamic": ["Convert", "FullyConnected"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_views_of_unknown_sizes_around_a_product_are_inside(name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    with torch.no_grad():
        module = layer(case)
        program = export(module, case.inputs, dynamic_shapes=case.dynamic_shapes)
        edge = to_edge(program).to_backend(XnnpackPartitioner())
        assert computing_calls(edge) == ["executorch_call_delegate"]
        assert payload_kinds(edge) == EXPECTED[name]
        for inputs in (case.inputs, *case.more):
            want = module(*inputs)
            atol = tolerance("float", want)
            if name == "rows_int8_dynamic":
                # Eager has one scale for all numbers, the delegate one for each row: each number
                # moves by at most half a step of both.
                x, weights = inputs[0], case.module[0].weight
                steps = (x.max().clamp(0) - x.min().clamp(max=0)) / 255
                atol += float(steps * weights.abs().sum(1).max())
            elif "int8" in name:  # sums are exact here and rounded there
                atol += float(want.abs().max()) / 127
            torch.testing.assert_close(run(edge, *inputs), want, rtol=0, atol=atol)


def test_rows_that_others_read_too_are_made_once_for_them() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(5, 8)), nn.Parameter(torch.randn(5, 8))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            rows = x.reshape(-1, 8)
            return (rows @ self.a.t()).reshape(2, -1, 5), (rows @ self.b.t()).relu()

    module, x = Shared(), torch.randn(2, 3, 8)
    shapes = ({1: Dim("length", min=2, max=5)},)
    edge = to_edge(export(module, (x,), dynamic_shapes=shapes)).to_backend(XnnpackPartitioner())
    assert computing_calls(edge) == ["executorch_call_delegate"]
    assert sorted(payload_kinds(edge)) == ["FullyConnected", "FullyConnected", "StaticReshape"]
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    for length in (2, 5):
        x = torch.randn(2, length, 8)
        with torch.no_grad():
            for got, want in zip(method.execute([x]), module(x), strict=True):
                torch.testing.assert_close(got, want, rtol=0, atol=tolerance("float", want))


def test_a_view_that_splits_rows_in_another_way_stays_a_view() -> None:
    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(torch.randn(5, 8))

        def forward(self, x: Tensor) -> Tensor:
            return (x.reshape(-1, 8) @ self.weights.t()).reshape(3, 2, 5)

    module, x = Other(), torch.randn(2, 3, 8)
    edge = to_edge(export(module, (x,))).to_backend(XnnpackPartitioner())
    assert payload_kinds(edge) == ["StaticReshape", "FullyConnected", "StaticReshape"]
    with torch.no_grad():
        want = module(x)
    torch.testing.assert_close(run(edge, x), want, rtol=0, atol=tolerance("float", want))


def test_a_bias_of_one_row_is_a_bias_and_one_number_for_all_is_not() -> None:
    case = CASES["row_bias"]()
    edge = to_edge_transform_and_lower(
        export(case.module, case.inputs), partitioner=[XnnpackPartitioner()]
    )
    assert payload_kinds(edge) == ["FullyConnected"]
    with torch.no_grad():
        want = case.module(*case.inputs)
        torch.testing.assert_close(
            run(edge, *case.inputs), want, rtol=0, atol=tolerance("float", want)
        )
        case.module.bias = nn.Parameter(torch.randn(1))
        edge = to_edge(export(case.module, case.inputs)).to_backend(XnnpackPartitioner())
        assert payload_kinds(edge) == []
        want = case.module(*case.inputs)
        torch.testing.assert_close(
            run(edge, *case.inputs), want, rtol=0, atol=tolerance("float", want)
        )


@pytest.mark.parametrize("name", ["quantized", "dequantized"])
@pytest.mark.parametrize("per_op", [False, True])
def test_a_conversion_by_itself_is_delegated_and_exact(name: str, per_op: bool) -> None:
    case = CASES[name]()
    partitioner = XnnpackPartitioner(per_op_mode=per_op)
    edge = to_edge_transform_and_lower(export(case.module, case.inputs), partitioner=[partitioner])
    assert computing_calls(edge) == ["executorch_call_delegate"]
    # A part of the range: what is beyond it is clamped first.
    assert payload_kinds(edge) == (["Clamp", "Convert"] if name == "quantized" else ["Convert"])
    assert torch.equal(run(edge, *case.inputs), case.module(*case.inputs))


def bfloat16_layer(weights: Any) -> tuple[nn.Module, Tensor]:
    from torchao.quantization import quantize_
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig

    torch.manual_seed(0)
    module = nn.Linear(64, 33).to(torch.bfloat16)
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=weights
    )
    quantize_(module, config)
    return module, torch.randn(2, 5, 64).to(torch.bfloat16)


@pytest.mark.parametrize("size", [32, 64])
def test_bfloat16_is_quantized_at_run_time_for_weights_in_groups_if_it_is_wanted(size: int) -> None:
    from torchao.quantization.granularity import PerGroup

    module, x = bfloat16_layer(PerGroup(size))
    program = export(module, (x,))
    wanted, unwanted = XnnpackPartitioner(enable_bf16=True), XnnpackPartitioner()
    edge = to_edge_transform_and_lower(program, partitioner=[wanted])
    assert computing_calls(edge) == ["executorch_call_delegate"]
    assert payload_kinds(edge) == ["Convert", "FullyConnected"]
    with torch.no_grad():
        want = module(x)
    got = run(edge, x)
    torch.testing.assert_close(got, want, rtol=0, atol=tolerance("int4_group", want))
    assert payload_kinds(to_edge_transform_and_lower(program, partitioner=[unwanted])) == []


RECURRENT = {
    "lstm": (nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True), (2, 5, 8), 24),
    "gru": (nn.GRU(8, 16), (5, 2, 8), 6),
    "rnn": (nn.RNN(8, 16), (5, 2, 8), 6),
    "lstm cell": (nn.LSTMCell(8, 16), (2, 8), 2),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_linear_layers_inside_of_recurrent_ones_are_delegated(name: str) -> None:
    torch.manual_seed(0)
    module, shape, count = RECURRENT[name]
    module.eval()
    x = torch.randn(shape)
    edge = to_edge_transform_and_lower(
        export(module, (x,)), partitioner=[XnnpackPartitioner([LinearConfig])]
    )
    kinds = payload_kinds(edge)
    assert kinds.count("FullyConnected") == count
    assert not any("mm" in name or "linear" in name for name in computing_calls(edge))
    with torch.no_grad():
        wanted = module(x)[0]
    torch.testing.assert_close(run(edge, x), wanted, atol=tolerance("", wanted), rtol=0)


def test_weights_that_negate_their_memory_are_read_as_they_are() -> None:
    linear = nn.Linear(6, 4).eval()
    linear.weight = nn.Parameter(torch._neg_view(torch.randn(4, 6)))
    x = torch.randn(3, 6)
    edge = to_edge_transform_and_lower(export(linear, (x,)), partitioner=[XnnpackPartitioner()])
    assert payload_kinds(edge) == ["FullyConnected"]
    torch.testing.assert_close(run(edge, x), linear(x).detach())


class Attends(nn.Module):
    """The view in front of the last product belongs to the attention, which is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.inner(x).reshape(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.outer(y.transpose(1, 2).reshape(b, t, c))


def test_a_view_of_two_unknown_sizes_stays_where_its_product_loses_the_view_in_front() -> None:
    model = Attends().eval()
    sizes = {0: Dim("b", min=1, max=4), 1: Dim("t", min=1, max=9)}
    program = export(model, (torch.randn(2, 5, 16),), dynamic_shapes=(sizes,))
    edge = to_edge(program).to_backend(XnnpackPartitioner())
    for x in (torch.randn(2, 5, 16), torch.randn(1, 1, 16), torch.randn(4, 9, 16)):
        torch.testing.assert_close(run(edge, x), model(x))


class Adapted(nn.Module):
    """A linear layer, to whose weights the product of two thin matrices is added."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(64, 96)
        self.down = nn.Parameter(torch.randn(4, 64) / 8)
        self.up = nn.Parameter(torch.randn(96, 4) / 8)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.base.weight + 2 * (self.up @ self.down)
        return nn.functional.linear(x, weight, self.base.bias.relu())


def test_weights_computed_from_constants_are_stored_alone() -> None:
    torch.manual_seed(0)
    model, x = Adapted(), torch.randn(3, 64)
    edge = to_edge_transform_and_lower(export(model, (x,)), partitioner=[XnnpackPartitioner()])
    assert computing_calls(edge) == ["executorch_call_delegate"]
    assert payload_kinds(edge) == ["FullyConnected"]
    assert len(edge.to_executorch().buffer) < 1.2 * model.base.weight.nbytes
    torch.testing.assert_close(run(edge, x), model(x))


def test_a_computed_weight_with_another_reader_is_there_for_it_too() -> None:
    class Both(Adapted):
        def forward(self, x: Tensor) -> Tensor:
            weight = self.up @ self.down
            return nn.functional.linear(x, weight) + (weight * x[0]).sum(1)

    torch.manual_seed(0)
    model, x = Both(), torch.randn(3, 64)
    edge = to_edge_transform_and_lower(export(model, (x,)), partitioner=[XnnpackPartitioner()])
    torch.testing.assert_close(run(edge, x), model(x))
