"""What the partitioner's options choose."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.config.gemm_configs import (
    ConvolutionConfig,
    LinearConfig,
)
from executorch.backends.xnnpack.partition.config.generic_node_configs import AddConfig, BMMConfig
from executorch.backends.xnnpack.partition.config.xnnpack_config import (
    ConfigPrecisionType,
    XNNPartitionerConfig,
)
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    ATTENTION,
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.error import ExportError
from executorch.exir.lowered_backend_module import get_lowered_backend_modules
from executorch.runtime import Runtime
from tests.interop.xnnpack_cases import CASES


def lowered(
    module: nn.Module, inputs: tuple[Tensor, ...], partitioner: Partitioner, shapes: Any = None
) -> EdgeProgramManager:
    with torch.no_grad():
        program = torch.export.export(module.eval(), inputs, dynamic_shapes=shapes)
    return to_edge_transform_and_lower(program, partitioner=[partitioner])


def run(edge: EdgeProgramManager, inputs: tuple[Tensor, ...]) -> Tensor:
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    result: Tensor = method.execute(inputs)[0]
    return result


def n_delegated(edge: EdgeProgramManager) -> int:
    return get_delegation_info(edge.exported_program().graph_module).num_delegated_nodes


class ComputedParameters(nn.Module):
    """Weights and a bias that are computed from constants, as timm has them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 8, 3), nn.Linear(8, 6)
        self.gain = nn.Parameter(torch.rand(8, 1, 1, 1) + 1)

    def forward(self, x: Tensor) -> Tensor:
        w = self.conv.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) * self.gain
        x = torch.conv2d(x, w, self.conv.bias).amax((2, 3))
        bias = torch.cat([self.out.bias[:3], torch.zeros(3)])
        return nn.functional.linear(x, self.out.weight, bias)


@pytest.mark.parametrize("flow", ["lower", "to_backend", "two methods"])
def test_weights_and_biases_computed_from_constants_are_constants(flow: str) -> None:
    model, x = ComputedParameters().eval(), torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        program, wanted = torch.export.export(model, (x,)), model(x)
    if flow == "lower":
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    elif flow == "to_backend":
        edge = to_edge(program).to_backend(XnnpackPartitioner())
    else:
        methods = {"forward": program, "again": program}
        edge = to_edge_transform_and_lower(methods, partitioner=[XnnpackPartitioner()])
    info = get_delegation_info(edge.exported_program().graph_module)
    assert not [left.op_type for left in info.left_out if "amax" not in left.op_type]
    torch.testing.assert_close(run(edge, (x,)), wanted)


def test_bfloat16_is_taken_where_it_is_asked_for() -> None:
    layer, x = nn.Linear(4, 3).to(torch.bfloat16), torch.ones(2, 4, dtype=torch.bfloat16)
    assert n_delegated(lowered(layer, (x,), XnnpackPartitioner())) == 0
    assert n_delegated(lowered(layer, (x,), XnnpackPartitioner(enable_bf16=True))) == 1


def test_weights_can_stay_with_the_program() -> None:
    layer, x = nn.Linear(4, 3), (torch.randn(2, 4),)
    partitioner = XnnpackPartitioner(force_non_static_weights_for_f32_linear=True)
    edge = lowered(layer, x, partitioner)
    (module,) = get_lowered_backend_modules(edge.exported_program().graph_module)
    signature = module.original_module.graph_signature
    assert len(signature.user_inputs) == 3 and set(edge.exported_program().state_dict)
    # 5 terms, each rounded in another order
    expected = layer(*x).detach()
    bound = 5 * 2**-23 * float(expected.abs().max() + 4)
    torch.testing.assert_close(run(edge, x), expected, rtol=0, atol=bound)


def test_only_the_operators_of_given_configs_are_taken() -> None:
    class ReLUConfig(XNNPartitionerConfig):
        target_name = "relu.default"

    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    edge = lowered(module, (torch.ones(1, 4),), XnnpackPartitioner(configs=[ReLUConfig]))
    assert delegated_names(edge) == ["aten.relu.default"]


def delegated_names(edge: EdgeProgramManager) -> list[str]:
    """Of the calls in delegates, without their numbers."""
    modules = get_lowered_backend_modules(edge.exported_program().graph_module)
    calls = [n for m in modules for n in m.original_module.graph.nodes if n.op == "call_function"]
    return [n.target.__name__ for n in calls]  # type: ignore[union-attr]


@pytest.mark.parametrize("config", ALL_PARTITIONER_CONFIGS, ids=lambda c: c.__name__)
def test_every_class_of_an_operator_stands_for_it(config: type[XNNPartitionerConfig]) -> None:
    made = config(enable_bf16=True)
    assert made.enabled_precision_types == made.supported_precision_types() != []
    made.set_enabled_precision_types([ConfigPrecisionType.STATIC_QUANT])
    assert set(made.enabled_precision_types) <= {ConfigPrecisionType.STATIC_QUANT}
    kept = made.get_original_aten()
    assert kept is None or str(kept).endswith(config.target_name)


def test_classes_of_operators_restrict_precision_and_constraints() -> None:
    class NarrowLinear(LinearConfig):
        def check_constraints(self, node: torch.fx.Node, ep: Any) -> bool:
            return super().check_constraints(node, ep) and node.meta["val"].shape[-1] < 8

    class QuantizedAdd(AddConfig):  # type: ignore[misc, valid-type]
        def supported_precision_types(self) -> list[ConfigPrecisionType]:
            return [ConfigPrecisionType.STATIC_QUANT]

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = nn.Linear(4, 4), nn.Linear(4, 16)

        def forward(self, x: Tensor) -> Tensor:
            return self.wide(self.narrow(x) + 1.0)

    x = (torch.ones(1, 4),)
    edge = lowered(Two(), x, XnnpackPartitioner(configs=[NarrowLinear, QuantizedAdd]))
    assert delegated_names(edge) == ["aten.linear.default"]
    reasons = [e.reason for e in get_delegation_info(edge.exported_program().graph_module).left_out]
    assert "QuantizedAdd is not for FP32" in reasons
    assert "NarrowLinear: a constraint is not met" in reasons
    both = lowered(Two(), x, XnnpackPartitioner(configs=[LinearConfig, AddConfig]))
    assert len(delegated_names(both)) == 3


def whole_ones() -> nn.Sequential:
    """Operators that stay whole for this backend, and for which the runtime has no kernel."""
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardswish(), nn.MaxPool2d(2), nn.PReLU(4))


def close(edge: EdgeProgramManager, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    # 27 terms, each rounded in another order, and two functions that widen no difference
    expected = module(*inputs).detach()
    bound = 32 * torch.finfo(expected.dtype).eps * float(expected.abs().max() + 4)
    torch.testing.assert_close(run(edge, inputs), expected, rtol=0, atol=bound)


def test_what_configs_leave_out_is_decomposed() -> None:
    module, x = whole_ones(), (torch.randn(2, 3, 8, 8),)
    edge = lowered(module, x, XnnpackPartitioner(configs=[ConvolutionConfig]))
    assert delegated_names(edge) == ["aten.convolution.default"]
    close(edge, module, x)


class Region(nn.Module):
    """Calls below the graph: torch makes it one of a higher order."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.layers = kind, whole_ones()

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "cond":
            layers = self.layers
            branches = (lambda x: layers(x).sum((2, 3)), lambda x: layers(x).amax((2, 3)))
            return torch.cond(x.sum() > 0, *branches, (x,))  # type: ignore[no-any-return]
        with torch.no_grad() if self.kind == "no_grad" else torch.autocast("cpu", torch.bfloat16):
            y = self.layers(x)
        return y + 1  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["no_grad", "autocast", "cond"])
def test_calls_in_regions_and_branches_are_asked_for(kind: str, dtype: torch.dtype) -> None:
    module, x = Region(kind).to(dtype).eval(), torch.randn(2, 3, 8, 8).to(dtype)
    # With gradients, for torch makes a region of `no_grad` only where there are some.
    edge = to_edge_transform_and_lower(
        torch.export.export(module, (x,)), partitioner=[XnnpackPartitioner()]
    )
    close(edge, module, (x,))
    if kind == "no_grad" and dtype is torch.float32:
        assert "aten.prelu.default" in delegated_names(edge)


class Slopes(nn.Module):
    def forward(self, x: Tensor, slopes: Tensor) -> Tensor:
        return nn.functional.prelu(x, slopes)


def test_prelu_is_decomposed_where_it_is_not_delegated() -> None:
    given = (torch.randn(2, 3, 4, 4), torch.rand(3))
    torch.testing.assert_close(
        run(lowered(Slopes(), given, XnnpackPartitioner()), given), Slopes()(*given)
    )
    module, rows = nn.Sequential(nn.Linear(4, 4), nn.PReLU()), (torch.randn(2, 5, 4),)
    shapes = ({1: torch.export.Dim("n", min=1, max=9)},)
    close(lowered(module, rows, XnnpackPartitioner(), shapes), module, rows)


def test_a_class_of_an_operator_names_what_goes_with_a_call() -> None:
    program = to_edge(
        torch.export.export(nn.Linear(4, 3), (torch.ones(1, 4),)),
        compile_config=EdgeCompileConfig(preserve_ops=[torch.ops.aten.linear.default]),
    ).exported_program()
    (linear,) = [n for n in program.graph.nodes if n.op == "call_function"]
    found = LinearConfig().get_partition(linear, program)
    assert [n.name for n in found] == [linear.name, "p_weight", "p_bias"]
    assert AddConfig().get_partition(linear, program) == []


@pytest.mark.parametrize(
    "module", [nn.MaxPool2d(2), nn.Hardswish(), nn.PReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)]
)
def test_what_is_not_claimed_runs_on_kernels(module: nn.Module) -> None:
    x = (torch.randn(1, 2, 7, 7),)
    edge = lowered(module, x, XnnpackDynamicallyQuantizedPartitioner())
    assert n_delegated(edge) == 0
    expected = module(*x).detach()
    bound = 4 * 2**-23 * float(expected.abs().max())
    torch.testing.assert_close(run(edge, x), expected, rtol=0, atol=bound)


def test_a_maximum_that_skips_pixels_runs_on_kernels() -> None:
    x = (torch.randn(1, 2, 9, 9),)
    edge = lowered(nn.MaxPool2d(2, stride=3), x, XnnpackPartitioner())
    assert n_delegated(edge) == 0
    assert torch.equal(run(edge, x), nn.MaxPool2d(2, stride=3)(*x))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: torch.clamp(x, 2, -2), (2, 4)),
        (lambda x: torch.clamp(x + x, 2, -2), (2, 4)),
        (lambda x: torch.clamp(x, min=math.nan), (2, 4)),
        (lambda x: x.mean((2, 3)), (1, 2, 0, 3)),
        (lambda x: x.mean((2, 3), keepdim=True), (1, 2, 3, 0)),
        (lambda x: x.mean(None), (2, 4)),
        (lambda x: x.mean(None, keepdim=True), (1, 2, 3, 5)),
    ],
)
def test_bounds_in_no_order_and_means_of_nothing_or_all_run_on_kernels(
    function: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    class Module(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return function(x)

    x = torch.randn(shape)
    edge = lowered(Module(), (x,), XnnpackPartitioner())
    assert get_delegation_info(edge.exported_program().graph_module).left_out
    torch.testing.assert_close(run(edge, (x,)), function(x), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_largest_without_its_index_is_delegated(dtype: torch.dtype) -> None:
    class Largest(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.max(2, keepdim=True).values + x.max(3, keepdim=True).values

    x = (torch.randn(2, 3, 5, 7).to(dtype),)
    edge = lowered(Largest(), x, XnnpackPartitioner())
    assert get_delegation_info(edge.exported_program().graph_module).left_out == []
    assert torch.equal(run(edge, x), Largest()(*x))


def test_a_product_is_taken_without_the_permutation_that_is_left_out() -> None:
    class Whiten(nn.Module):
        """The eigenvectors lie by columns, so no payload can hold them."""

        def forward(self, x: Tensor) -> Tensor:
            values, vectors = torch.linalg.eigh(x.mT @ x / x.shape[0])
            return x @ (vectors * (values + 1e-3).rsqrt()) @ vectors.mT

    x = (torch.randn(10, 6, generator=torch.Generator().manual_seed(0)),)
    edge = lowered(Whiten(), x, XnnpackPartitioner())
    assert "aten.mm.default" in delegated_names(edge)
    torch.testing.assert_close(run(edge, x), Whiten()(*x), rtol=1e-4, atol=1e-4)


def test_what_has_no_upper_bound_is_left_to_the_error_that_says_so() -> None:
    class Ramp(nn.Module):
        def forward(self, x: Tensor, n: Tensor) -> Tensor:
            return torch.arange(n.item(), dtype=torch.float32) * x.abs()

    edge = lowered(Ramp(), (torch.ones(1), torch.tensor(4)), XnnpackPartitioner())
    left = get_delegation_info(edge.exported_program().graph_module).left_out
    assert any(e.reason.endswith("has an extent without an upper bound") for e in left)
    with pytest.raises(ExportError, match="tell a bound in the model"):
        edge.to_executorch()


def test_a_transformer_of_any_length_is_three_delegates_around_a_whole_attention() -> None:
    case = CASES["block"]()
    edge = lowered(case.module, case.inputs, XnnpackPartitioner(), case.dynamic_shapes)
    info = get_delegation_info(edge.exported_program().graph_module)
    # queries, keys and values; what follows the attention; the layers behind the second norm
    assert info.num_delegated_subgraphs == 3
    left = {each.op_type: each.reason for each in info.left_out}
    of_attention = ("split", "permute", "bmm", "softmax", "where", "full_like", "view", "mul")
    for op, reason in left.items():
        assert (reason == ATTENTION) == any(name in op for name in of_attention) or "norm" not in op
    assert all(any(name in op for op in left) for name in of_attention)
    assert not [op for op in left if any(name in op for name in ("linear", "gelu"))]
    assert all(each.reason and ".py:" in each.line for each in info.left_out)


def test_an_attention_that_fits_stays_in_its_delegate() -> None:
    case = CASES["attention"]()
    edge = lowered(case.module, case.inputs, XnnpackPartitioner())
    info = get_delegation_info(edge.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.left_out) == (1, [])


def test_chosen_operators_are_taken_out_of_an_attention() -> None:
    case = CASES["block"]()
    partitioner = XnnpackPartitioner(configs=[BMMConfig])
    edge = lowered(case.module, case.inputs, partitioner, case.dynamic_shapes)
    assert delegated_names(edge) == ["aten.bmm.default"] * 2


def test_integer_products_of_torchao_are_delegated() -> None:
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    layer, x = nn.Linear(32, 8), torch.randn(5, 32)
    quantize_(layer, Int8DynamicActivationInt8WeightConfig())
    edge = lowered(layer, (x,), XnnpackPartitioner())
    info = get_delegation_info(edge.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.left_out) == (1, [])
    with torch.no_grad():
        weights = layer.weight.dequantize().abs().sum(1)  # type: ignore[operator]
        expected = layer(x)
    # Rows are rounded to other steps: here and there each number moves by half a step of a row.
    bound = (x.abs().amax(1, keepdim=True) / 127.5 * weights).max()
    torch.testing.assert_close(run(edge, (x,)), expected, rtol=0, atol=float(bound))


def test_constants_that_are_computed_in_many_steps_are_found_once() -> None:
    """Each step reads the one before twice: as an expression it has 2^60 parts."""

    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weights", torch.randn(4, 4))

        def forward(self, x: Tensor) -> Tensor:
            weights = self.weights
            for _ in range(60):
                weights = (weights + weights.t()) * 0.5
            return x @ weights

    model, x = Doubled().eval(), torch.randn(3, 4)
    edge = to_edge_transform_and_lower(
        torch.export.export(model, (x,)), partitioner=[XnnpackPartitioner()]
    )
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    torch.testing.assert_close(method.execute([x])[0], model(x))
