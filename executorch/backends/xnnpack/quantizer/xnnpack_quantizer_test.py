"""Which nodes get which annotation, before any observer sees a value."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import SharedQuantizationSpec

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.activations import is_float
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.capture._callable import as_module
from executorch.exir.delegate import executorch_call_delegate
from executorch.runtime import Runtime

aten = torch.ops.aten
STATIC = get_symmetric_quantization_config(is_per_channel=True)
DYNAMIC = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)


def annotated(module: nn.Module, *inputs: Tensor, quantizer: Any = None) -> GraphModule:
    captured = torch.export.export(module.eval(), inputs).module()
    quantizer = quantizer or XNNPACKQuantizer().set_global(STATIC)
    quantizer.annotate(quantizer.transform_for_annotation(captured))
    return captured


def annotation(node: Node) -> Any:
    return node.meta.get("quantization_annotation")


def calls(graph_module: GraphModule, target: Any) -> list[Node]:
    return list(graph_module.graph.find_nodes(op="call_function", target=target))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


def test_a_relu_is_one_operator_with_the_linear_before_it() -> None:
    graph = annotated(Layer(), torch.randn(2, 4))
    first, relu = calls(graph, aten.linear.default)[0], calls(graph, aten.relu.default)[0]
    assert set(annotation(first).input_qspec_map.values()) == {
        STATIC.input_activation,
        STATIC.weight,
    }
    assert annotation(first).output_qspec is None
    assert annotation(relu).output_qspec == STATIC.output_activation


def test_a_dynamic_configuration_touches_what_runs_in_integers_alone() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.linear = nn.Conv2d(3, 4, 3), nn.Linear(6, 5)
            self.own, self.back = nn.Conv2d(4, 4, 1, groups=4), nn.ConvTranspose2d(4, 4, 1)
            self.backs = nn.ConvTranspose2d(4, 4, 1, groups=2)

        def forward(self, x: Tensor) -> Tensor:
            y = self.backs(self.back(self.own(self.conv(x))))
            return self.linear(torch.cat([y + y * 2.0], -1))

    quantizer = XNNPACKQuantizer().set_global(DYNAMIC)
    graph = annotated(Mixed(), torch.randn(1, 3, 8, 8), quantizer=quantizer)
    touched = [n.target for n in graph.graph.nodes if annotation(n) is not None]
    wanted = [aten.conv2d.default, aten.conv_transpose2d.input, aten.linear.default]
    assert touched == wanted and len(calls(graph, aten.conv_transpose2d.input)) == 2


def test_parts_of_a_split_are_quantized_as_other_values_are() -> None:
    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x.split(2, 1)[1])

    graph = annotated(Split(), torch.randn(2, 4), quantizer=XNNPACKQuantizer().set_global(DYNAMIC))
    (linear,) = calls(graph, aten.linear.default)
    assert linear.args[0] in annotation(linear).input_qspec_map


def test_parts_of_activations_share_their_parameters() -> None:
    def function(x: Tensor) -> Any:
        y = x + x
        return y.chunk(3, -1), y.split(3), torch.split(y, [1, 3], dim=0), y.tensor_split(2, 1)

    graph = annotated(as_module(function), torch.randn(4, 5))
    (add,), parts = calls(graph, aten.add.Tensor), calls(graph, aten.slice.Tensor)
    assert len(parts) == 9
    assert {annotation(n).output_qspec for n in parts} == {SharedQuantizationSpec(add)}
    x = torch.randn(4, 5)
    for got, want in zip(tree_leaves(graph(x)), tree_leaves(function(x)), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


def test_parts_of_parts_are_activations_too() -> None:
    graph = annotated(as_module(lambda x: x.chunk(2)[1].chunk(2, 1)[0] * 0.5), torch.randn(4, 4))
    (product,) = calls(graph, aten.mul.Tensor)
    assert len(annotation(product).input_qspec_map) == 2


def test_what_is_expanded_for_a_product_is_broadcast_by_it() -> None:
    class Gate(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            gate = x.mean((2, 3), keepdim=True).sigmoid()
            return x * gate.expand_as(x), gate.expand(2, 3, 4, 4) + gate

    graph = annotated(Gate(), torch.randn(2, 3, 4, 4))
    (product,), (add,) = calls(graph, aten.mul.Tensor), calls(graph, aten.add.Tensor)
    (gate,) = calls(graph, aten.sigmoid.default)
    assert product.args[1] is gate and add.args[0] is not gate
    assert gate in annotation(product).input_qspec_map


def test_only_floating_point_values_are_annotated() -> None:
    def function(ids: Tensor, mask: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        hidden = (1.0 - mask.to(torch.float32)) * torch.finfo(torch.float32).min
        return ids + 1, torch.cat([ids, mask]) * 2, x + hidden, x + x

    ids = torch.arange(4)
    graph = annotated(as_module(function), ids, torch.ones_like(ids), torch.randn(4))
    for node in graph.graph.nodes:
        found = annotation(node)
        if found is not None:
            assert is_float(node) and all(map(is_float, found.input_qspec_map))
    touched = [n for n in graph.graph.nodes if annotation(n) is not None]
    assert touched == calls(graph, aten.add.Tensor)[-1:]  # x + x, not x + mask


def test_a_number_becomes_a_constant_where_activations_are_scaled() -> None:
    graph = annotated(as_module(lambda x: F.relu(x * 0.5)), torch.randn(4))
    (product,) = calls(graph, aten.mul.Tensor)
    assert len(annotation(product).input_qspec_map) == 2
    assert torch.equal(graph(torch.tensor([2.0]).expand(4)), torch.ones(4))


def test_parts_of_a_cat_and_what_only_moves_values_share_parameters() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x + x, y * y], 1).permute(0, 2, 3, 1)

    shape = (1, 2, 4, 4)
    graph = annotated(as_module(function), torch.randn(shape), torch.randn(shape))
    (cat,), (permute,) = calls(graph, aten.cat.default), calls(graph, aten.permute.default)
    assert annotation(cat).output_qspec == SharedQuantizationSpec((cat.args[0][0], cat))
    assert annotation(permute).output_qspec == SharedQuantizationSpec(cat)


def test_what_only_moves_values_needs_no_setting_of_its_own() -> None:
    module, x = nn.Sequential(nn.Linear(4, 6), nn.Flatten()), torch.randn(2, 3, 4)
    quantizer = XNNPACKQuantizer().set_operator_type(aten.linear.default, STATIC)
    graph = annotated(module, x, quantizer=quantizer)
    (linear,), (flat,) = calls(graph, aten.linear.default), calls(graph, aten.flatten.using_ints)
    assert annotation(flat).output_qspec == SharedQuantizationSpec(linear)
    quantizer.set_operator_type(aten.flatten.using_ints, None)
    (flat,) = calls(annotated(module, x, quantizer=quantizer), aten.flatten.using_ints)
    assert annotation(flat) is None


class Derived(nn.Module):
    """A weight that is computed from a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.rows.t() * 2)


def test_a_weight_may_be_computed_from_parameters() -> None:
    x = torch.randn(2, 4)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Derived(), (x,)).module(), quantizer)
    want = prepared(x)
    converted = convert_pt2e(prepared)
    (linear,) = calls(converted, aten.linear.default)
    (weight,) = linear.args[1].all_input_nodes
    assert getattr(converted, str(weight.target)).dtype == torch.int8
    step = converted(x).abs().max() / 127
    torch.testing.assert_close(converted(x), want, rtol=0, atol=float(12 * step))


def test_a_model_of_which_a_part_is_quantized_can_be_quantized_again() -> None:
    x = torch.randn(2, 4)
    model = Layer()
    quantizer = XNNPACKQuantizer().set_module_name("up", STATIC)
    once = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
    once(x)
    once = convert_pt2e(once)
    graph = torch.export.export(once, (x,)).module()
    XNNPACKQuantizer().set_global(STATIC).annotate(graph)
    up, down = calls(graph, aten.linear.default)
    assert annotation(up) is None and annotation(down) is not None


def test_padding_with_other_than_zero_is_left() -> None:
    graph = annotated(as_module(lambda x: F.pad(x + x, (1, 1), value=7.0)), torch.randn(4))
    assert [n.target for n in graph.graph.nodes if annotation(n)] == [aten.add.Tensor]


def test_a_transposed_convolution_has_scales_along_its_output_channels() -> None:
    graph = annotated(nn.ConvTranspose2d(4, 6, 2), torch.randn(1, 4, 5, 5))
    (conv,) = calls(graph, aten.conv_transpose2d.input)
    assert annotation(conv).input_qspec_map[conv.args[1]].ch_axis == 1
    grouped = annotated(nn.ConvTranspose2d(4, 6, 2, groups=2), torch.randn(1, 4, 5, 5))
    (conv,) = calls(grouped, aten.conv_transpose2d.input)
    assert annotation(conv).input_qspec_map[conv.args[1]].qscheme is torch.per_tensor_symmetric


def test_trained_scales_of_a_transposed_convolution_lie_along_its_output_channels() -> None:
    model, x = nn.ConvTranspose2d(4, 6, 2), torch.randn(1, 4, 5, 5)
    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    captured = torch.export.export(model, (x,)).module()
    prepared = prepare_qat_pt2e(captured, XNNPACKQuantizer().set_global(config))
    prepared(x)
    converted = convert_pt2e(prepared)
    (conv,) = calls(converted, aten.conv_transpose2d.input)
    scales = getattr(converted, str(conv.args[1].args[1].target))
    expected = model.weight.detach().abs().amax((0, 2, 3)) / 127
    torch.testing.assert_close(scales, expected, rtol=0.01, atol=0)
    edge = to_edge_transform_and_lower(
        torch.export.export(converted, (x,)), partitioner=[XnnpackPartitioner()]
    )
    graph = edge.exported_program().graph_module
    assert [n.target for n in calls(graph, executorch_call_delegate)] and not any(
        "convolution" in str(n.target) for n in graph.graph.nodes
    )


@pytest.mark.parametrize(
    "settle",
    [
        lambda q: q.set_module_name("down", None).set_global(STATIC),
        lambda q: q.set_module_name("up", STATIC),
        lambda q: q.set_filter_function(lambda n: "up" in str(n.args)).set_global(STATIC),
    ],
    ids=["all but one", "one", "filter"],
)
def test_settings_by_name_choose_modules(settle: Any) -> None:
    graph = annotated(Layer(), torch.randn(2, 4), quantizer=settle(XNNPACKQuantizer()))
    up, down = calls(graph, aten.linear.default)
    assert annotation(up) is not None and annotation(down) is None


def test_settings_by_type_choose_modules_and_operators() -> None:
    for quantizer in (
        XNNPACKQuantizer().set_module_type(nn.Linear, DYNAMIC),
        XNNPACKQuantizer().set_operator_type(aten.linear, DYNAMIC),
        XNNPACKQuantizer().set_operator_type(aten.linear.default, DYNAMIC),
    ):
        graph = annotated(Layer(), torch.randn(2, 4), quantizer=quantizer)
        assert all(map(annotation, calls(graph, aten.linear.default)))
        assert not any(map(annotation, calls(graph, aten.relu.default)))


def test_what_is_supported_can_be_asked_for() -> None:
    ask = XNNPACKQuantizer.get_supported_operator_for_quantization_config
    assert ask(DYNAMIC) == [
        [aten.linear.default],
        [aten.bmm.default, aten.matmul.default],
        [aten.conv1d.default, aten.conv1d.padding, aten.conv2d.default, aten.conv2d.padding],
        [aten.conv_transpose1d.default, aten.conv_transpose2d.input],
    ]
    assert [aten.cat.default] in ask(STATIC)
    assert len(XNNPACKQuantizer.get_supported_operators()) == 8


def test_the_old_home_is_the_same_module() -> None:
    from executorch.compat import hook

    hook.install()
    from torch.ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer as old

    assert old is XNNPACKQuantizer


@pytest.mark.parametrize("config", [STATIC, DYNAMIC])
def test_of_half_precision_only_linear_layers_are_quantized_and_only_at_run_time(
    config: Any,
) -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.linear = nn.Conv2d(3, 4, 3).half(), nn.Linear(6, 5).half()

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(self.conv(x))

    x = torch.randn(1, 3, 4, 8).half()
    graph = annotated(Half(), x, quantizer=XNNPACKQuantizer().set_global(config))
    (conv,), (linear,) = calls(graph, aten.conv2d.default), calls(graph, aten.linear.default)
    assert annotation(conv) is None
    assert (annotation(linear) is not None) == (config is DYNAMIC)


def test_a_quantized_half_linear_layer_runs_in_the_backend() -> None:
    layer, x = nn.Linear(64, 24).half().eval(), torch.randn(5, 64).half()
    quantizer = XNNPACKQuantizer().set_global(DYNAMIC)
    prepared = prepare_pt2e(torch.export.export(layer, (x,)).module(), quantizer)
    prepared(x)
    exported = torch.export.export(convert_pt2e(prepared), (x,))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    called = [n for n in lowered.exported_program().graph.nodes if n.op == "call_function"]
    assert [n.target for n in called if "getitem" not in n.name] == [executorch_call_delegate]
    method = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
    (result,) = method.execute([x])
    w, rows = layer.weight.detach().double(), x.double()
    # Half a step of each operand, of rows by their range and of weights by their largest value,
    # and the rounding of the sum and of scales to half precision.
    range_of = rows.amax(1).clamp(min=0) - rows.amin(1).clamp(max=0)
    steps = [range_of[:, None] / 255, w.abs().amax(1)[None] / 127]
    bound = steps[0] * w.abs().sum(1)[None] + steps[1] * rows.abs().sum(1)[:, None]
    bound = bound / 2 + 64 * steps[0] * steps[1] / 4
    truth = rows @ w.T + layer.bias.detach().double()
    eps = torch.finfo(torch.float16).eps
    bound += 2 * eps * (rows.abs() @ w.abs().T + truth.abs())
    assert result.dtype is torch.float16
    assert bool(((result.double() - truth).abs() <= bound).all())


def test_a_name_that_no_module_has_is_told() -> None:
    known = XNNPACKQuantizer().set_module_name("up", STATIC).set_module_name("down", None)
    captured = torch.export.export(Layer().eval(), (torch.randn(2, 4),)).module()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known.validate(captured)
    with pytest.warns(UserWarning, match="set_module_name\\('dwon'\\) is for no operator"):
        XNNPACKQuantizer().set_module_name("dwon", STATIC).validate(captured)


def test_settings_of_other_types_are_refused() -> None:
    quantizer = XNNPACKQuantizer()
    with pytest.raises(TypeError, match="set_module_name: expected a str, found 3"):
        quantizer.set_module_name(3, STATIC)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="set_operator_type: expected .* found 'linear'"):
        quantizer.set_operator_type("linear", STATIC)
    with pytest.raises(TypeError, match="expected a QuantizationConfig, .* found 3"):
        quantizer.set_global(3)  # type: ignore[arg-type]
