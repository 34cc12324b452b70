from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export.graph_signature import InputKind
from torch.nn import functional as F

from executorch.backends.transforms import apply_addmm_mm_to_linear_transform, get_shape
from executorch.backends.transforms.addmm_mm_to_linear import AddmmToLinearTransform
from executorch.backends.transforms.arithmetic import MeanToSumDiv, ReplaceScalarWithTensorArgPass
from executorch.backends.transforms.aten_to_dialect_pass import AtenToDialectPass, DialectNodeSpec
from executorch.backends.transforms.convert_conv1d_to_conv2d_pass import (
    ConvertConv1dToConv2dPass,
)
from executorch.backends.transforms.decompose_sdpa import DecomposeScaledDotProductAttention
from executorch.backends.transforms.enforce_contiguous_dim_order import EnforceContiguousDimOrder
from executorch.backends.transforms.fuse_batch_norm_with_conv import FuseBatchNormWithConvPass
from executorch.backends.transforms.fuse_duplicate_users_pass import FuseDuplicateUsersPass
from executorch.backends.transforms.utils import (
    create_constant_placeholder,
    get_param_tensor,
    is_param_node,
    set_param_tensor,
)
from executorch.backends.transforms.views import (
    CollapseViewCopyPass,
    FuseCascadedTransposeOrPermuteOps,
    FuseTransposeOrPermuteOpPairsPass,
    FuseViewCopyTransform,
    ReplaceNopTransposeOrPermuteWithViewPass,
    ReplaceSqueezeAndUnsqueezeWithViewPass,
    ViewCopyToSqueezeUnsqueezePass,
)
from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.tensor import dim_order_of

edge = ops.edge.aten
clone = ops.edge.dim_order_ops._clone_dim_order.default
X = torch.randn(2, 1, 3, 4)
MEMORY = torch.channels_last


class Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def lowered(model: Any, *inputs: Tensor) -> Any:
    module = model if isinstance(model, nn.Module) else Of(model)
    return to_edge(torch.export.export(module.eval(), inputs)).exported_program()


def targets(holder: Any) -> list[Any]:
    return [n.target for n in holder.graph.nodes if n.op == "call_function"]


def quantized_between(x: Tensor) -> Tensor:
    y = x.permute(0, 2, 3, 1)
    q = torch.ops.quantized_decomposed.quantize_per_tensor(y, 0.1, 3, -128, 127, torch.int8)
    return q.permute(0, 3, 1, 2)


VIEW, PERMUTE = edge.view_copy.default, edge.permute_copy.default
SQUEEZE, UNSQUEEZE = edge.squeeze_copy.dims, edge.unsqueeze_copy.default
QUANTIZE = ops.edge.quantized_decomposed.quantize_per_tensor.default
#: pass, model, what is left
CASES: dict[str, tuple[Any, Callable[[Tensor], Tensor], list[Any]]] = {
    "views": (CollapseViewCopyPass, lambda x: x.view(24).view(6, 4).view(3, 8), [VIEW]),
    "views back": (
        CollapseViewCopyPass,
        lambda x: x.abs().view(24).view(2, 1, 3, 4).neg(),
        [edge.abs.default, edge.neg.default],
    ),
    "squeeze": (ViewCopyToSqueezeUnsqueezePass, lambda x: x.view(2, 3, 4), [SQUEEZE]),
    "unsqueeze in front": (
        ViewCopyToSqueezeUnsqueezePass,
        lambda x: x.view(1, *x.shape),
        [UNSQUEEZE],
    ),
    "unsqueeze behind": (
        ViewCopyToSqueezeUnsqueezePass,
        lambda x: x.view(*x.shape, 1),
        [UNSQUEEZE],
    ),
    "another view": (ViewCopyToSqueezeUnsqueezePass, lambda x: x.view(4, 3, 2), [VIEW]),
    "view of squeeze": (
        ReplaceSqueezeAndUnsqueezeWithViewPass,
        lambda x: x.squeeze(1).unsqueeze(0),
        [VIEW, VIEW],
    ),
    "unmoved": (ReplaceNopTransposeOrPermuteWithViewPass, lambda x: x.permute(1, 0, 2, 3), [VIEW]),
    "moved": (ReplaceNopTransposeOrPermuteWithViewPass, lambda x: x.permute(0, 1, 3, 2), [PERMUTE]),
    "permutes": (
        FuseCascadedTransposeOrPermuteOps,
        lambda x: x.permute(0, 2, 3, 1).permute(1, 0, 2, 3),
        [PERMUTE],
    ),
    "permutes back": (
        FuseCascadedTransposeOrPermuteOps,
        lambda x: x.abs().transpose(0, -1).permute(3, 1, 2, 0).neg(),
        [edge.abs.default, edge.neg.default],
    ),
    "around quantization": (FuseTransposeOrPermuteOpPairsPass, quantized_between, [QUANTIZE]),
    "view over unary": (
        FuseViewCopyTransform,
        lambda x: x.view(24).abs().view(4, 6).relu().view(3, 8),
        [VIEW, edge.abs.default, edge.relu.default],
    ),
    "mean": (
        MeanToSumDiv,
        lambda x: x.mean((2, 3), keepdim=True),
        [edge.sum.dim_IntList, edge.full.default, edge.div.Tensor],
    ),
    "mean of all": (
        MeanToSumDiv,
        lambda x: x.mean((0, 1, 2, 3)),
        [edge.sum.dim_IntList, edge.full.default, edge.div.Tensor],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_passes_keep_values_and_leave(name: str) -> None:
    make, function, left = CASES[name]
    program = lowered(function, X)
    result = make()(program)
    assert targets(program) == left
    assert result.modified == (name not in ("another view", "moved"))
    value = program.module()(X)
    torch.testing.assert_close(value, function(X))
    assert program.graph.output_node().args[0][0].meta["val"].shape == value.shape


def test_a_permutation_that_something_else_reads_stays() -> None:
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return quantized_between(x), x.permute(0, 2, 3, 1).abs()

    program = lowered(both, X)
    FuseDuplicateUsersPass()(program)
    assert not FuseTransposeOrPermuteOpPairsPass()(program).modified


def scalar_edge(function: Callable[[Tensor], Tensor], x: Tensor, target: Any, *args: Any) -> Any:
    """A program whose one call is that of an operator with a number."""
    program = lowered(function, x)
    call = next(n for n in program.graph.nodes if n.op == "call_function")
    operand = program.graph.find_nodes(op="placeholder")[-1]
    call.target, call.args, call.kwargs = target, (operand, *args), {}
    return program


@pytest.mark.parametrize("x", [X, torch.tensor(2.0)])
def test_numbers_become_tensors(x: Tensor) -> None:
    program = scalar_edge(lambda x: x + 3, x, edge.add.Scalar, 3, 2)
    assert ReplaceScalarWithTensorArgPass()(program).modified
    assert targets(program) == [edge.full.default, edge.add.Tensor]
    torch.testing.assert_close(program.module()(x), x + 6)


def test_a_fraction_beside_integers_stays_a_number() -> None:
    x = torch.arange(3)
    program = scalar_edge(lambda x: x * 2, x, edge.mul.Scalar, 0.5)
    assert not ReplaceScalarWithTensorArgPass()(program).modified
    assert targets(program) == [edge.mul.Scalar]


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_become_linear(shape: tuple[int, ...], bias: bool) -> None:
    x, layer = torch.randn(shape), nn.Linear(8, 4, bias=bias)
    program = lowered(layer, x)
    assert AddmmToLinearTransform()(program).modified
    assert targets(program) == [edge.linear.default]
    again = lowered(layer, x)
    assert apply_addmm_mm_to_linear_transform(again.graph) is again.graph
    assert targets(again) == [edge.linear.default]


def test_a_shape_is_the_largest() -> None:
    rows = torch.export.Dim("rows", max=7)
    program = torch.export.export(
        Of(torch.relu), (torch.zeros(3, 2),), dynamic_shapes=(({0: rows},),)
    )
    assert get_shape(next(iter(program.graph.nodes))) == [7, 2]


Q, K = torch.randn(1, 4, 3, 8), torch.randn(1, 4, 5, 8)
KEPT = torch.tensor([[True, False, True, True, True], [False] * 5, [True] * 5])
ATTENTIONS: dict[str, tuple[Tensor, Tensor, dict[str, Any]]] = {
    "plain": (Q, K, {}),
    "scale": (Q, K, {"scale": -0.5}),
    "mask, and a query without keys": (Q, K, {"attn_mask": KEPT}),
    "added mask": (Q, K, {"attn_mask": torch.randn(3, 5)}),
    "causal": (Q, K, {"is_causal": True}),
    "groups": (Q, K[:, :2], {"enable_gqa": True}),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_in_parts(name: str) -> None:
    q, k, options = ATTENTIONS[name]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, **options)

    program = torch.export.export(Of(attend), (q, k, k.clone()))
    module = program.module()
    assert DecomposeScaledDotProductAttention()(module).modified
    assert torch.ops.aten.scaled_dot_product_attention.default not in targets(module)
    expected = attend(q, k, k.clone())
    # Sums of 8 products and of 5 weighted values, both rounded as often.
    tolerance = 16 * torch.finfo(q.dtype).eps * float(k.abs().max())
    torch.testing.assert_close(module(q, k, k.clone()), expected, atol=tolerance, rtol=1e-6)


def test_attention_of_dynamic_length_in_parts() -> None:
    length = torch.export.Dim("length", max=9)
    attend = Of(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True))
    program = torch.export.export(attend, (Q,), dynamic_shapes=(({2: length},),))
    module = program.module()
    DecomposeScaledDotProductAttention()(module)
    for n_tokens in (2, 9):
        q = torch.randn(1, 4, n_tokens, 8)
        torch.testing.assert_close(module(q), attend(q))


def test_heads_that_do_not_fit_are_named() -> None:
    attend = Of(lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True))
    module = torch.export.export(attend, (Q, K[:, :2])).module()
    (call,) = module.graph.find_nodes(
        op="call_function", target=torch.ops.aten.scaled_dot_product_attention.default
    )
    call.kwargs = {}
    with pytest.raises(ValueError, match="4 heads of queries, 2 of keys"):
        DecomposeScaledDotProductAttention()(module)


IMAGE = torch.randn(1, 3, 4, 5)
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "clone between": lambda x: torch.relu(x.clone(memory_format=MEMORY)) * 2,
    "clone at the end": lambda x: torch.relu(x).clone(memory_format=MEMORY),
    "contiguous at the end": lambda x: torch.relu(x).clone(memory_format=torch.contiguous_format),
    "cast": lambda x: x.to(torch.float64, memory_format=MEMORY) + 1,
    "empty": lambda x: torch.empty_like(x, memory_format=MEMORY).fill_(2) + x,
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("memory_format", [MEMORY, torch.contiguous_format])
def test_only_ends_keep_another_order(name: str, memory_format: torch.memory_format) -> None:
    function, x = LAYOUTS[name], IMAGE.to(memory_format=memory_format)
    program = lowered(function, x)
    before = [n.meta["val"] for n in program.graph.output_node().args[0]]
    EnforceContiguousDimOrder()(program)
    results = program.graph.output_node().args[0]
    assert [dim_order_of(n.meta["val"]) for n in results] == [dim_order_of(v) for v in before]
    inner = [n for n in program.graph.nodes if n.op == "call_function" and n not in results]
    assert all(n.meta["val"].is_contiguous() for n in inner)
    torch.testing.assert_close(program.module()(x), function(x))
    assert not EnforceContiguousDimOrder()(program).modified


def test_substitutions_belong_to_their_class() -> None:
    class ToSub(AtenToDialectPass):
        pass

    class ToNothing(AtenToDialectPass):
        pass

    @ToSub.register_dialect_substitution(edge.add.Tensor)
    def subtract(node: Any, _: AtenToDialectPass) -> DialectNodeSpec | None:
        is_double = node.args[0] is node.args[1]
        return None if is_double else DialectNodeSpec(edge.sub.Tensor, node.args)

    program = lowered(lambda x, y: (x + y, x + x), X, X + 1)
    assert not ToNothing(program)(program).modified
    assert ToSub(program)(program).modified
    assert targets(program) == [edge.sub.Tensor, edge.add.Tensor]
    with pytest.raises(RuntimeError, match="ToSub: two substitutions"):
        ToSub.register_dialect_substitution(edge.add.Tensor)(subtract)


def test_batch_norm_goes_into_the_convolution_of_its_program() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4)).eval()
    model[1].running_mean = torch.randn(4)
    program = lowered(model, IMAGE)
    result = FuseBatchNormWithConvPass(program)(program.graph_module)
    assert targets(result.graph_module) == [edge.convolution.default]
    # 12 products of a float each.
    torch.testing.assert_close(program.module()(IMAGE), model(IMAGE), atol=1e-5, rtol=0)


def test_a_substitution_may_add_constants() -> None:
    class Doubled(AtenToDialectPass):
        pass

    @Doubled.register_dialect_substitution(edge.abs.default)
    def by_a_constant(node: Any, own: AtenToDialectPass) -> DialectNodeSpec:
        program = own.exported_program
        with program.graph.inserting_before(next(iter(program.graph.nodes))):
            kind, two = InputKind.CONSTANT_TENSOR, torch.tensor(2.0)
            given = create_constant_placeholder(program, program.graph, "two", kind, two)
        return DialectNodeSpec(edge.mul.Tensor, (node.args[0], given))

    manager = to_edge(torch.export.export(Of(torch.abs), (X,)))
    changed = manager.transform([Doubled(manager.exported_program())]).exported_program()
    torch.testing.assert_close(changed.module()(X), 2 * X)


def test_some_duplicates_may_stay() -> None:
    program = lowered(lambda x: (x.abs() * 2 + x.abs(), x.neg() * 3 + x.neg()), X)
    FuseDuplicateUsersPass(frozenset({edge.neg.default}))(program)
    assert targets(program).count(edge.abs.default) == 1
    assert targets(program).count(edge.neg.default) == 2


def test_a_weight_can_be_set() -> None:
    layer = nn.Linear(3, 2)
    program = lowered(layer, torch.ones(1, 3))
    weight = next(n for n in program.graph.nodes if is_param_node(program, n))
    set_param_tensor(program, weight, torch.zeros(2, 3))
    assert not get_param_tensor(program, weight).any()  # type: ignore[union-attr]
    torch.testing.assert_close(program.module()(torch.ones(1, 3)), layer.bias.unsqueeze(0))
    user_input = program.graph.find_nodes(op="placeholder")[-1]
    with pytest.raises(RuntimeError, match="no constant"):
        set_param_tensor(program, user_input, torch.zeros(1, 3))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("collapse_view_copy", "CollapseViewCopyPass"),
        ("fuse_cascaded_view_ops", "FuseCascadedViewOps"),
        ("mean_to_sum_div", "MeanToSumDiv"),
        ("view_copy_to_squeeze_unsqueeze", "ViewCopyToSqueezeUnsqueezePass"),
    ],
)
def test_passes_have_modules_of_their_names(module: str, name: str) -> None:
    assert getattr(importlib.import_module(f"executorch.backends.transforms.{module}"), name)


class Sequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)
        self.back = nn.ConvTranspose1d(6, 3, 2, stride=2, output_padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.back(self.conv(x) + self.conv(-x))


def test_convolutions_over_sequences_become_those_over_images() -> None:
    model, x = Sequences().eval(), torch.randn(2, 4, 15)
    program = lowered(model, x)
    assert ConvertConv1dToConv2dPass(program)(program.graph_module).modified
    convs = program.graph.find_nodes(op="call_function", target=edge.convolution.default)
    assert [conv.meta["val"].dim() for conv in convs] == [4] * 3
    assert program.state_dict["conv.weight"].shape == (6, 2, 1, 3)
    torch.testing.assert_close(program.module()(x), model(x))
    assert not ConvertConv1dToConv2dPass(program)(program.graph_module).modified


def test_a_program_may_be_given_by_its_manager() -> None:
    model, x = Sequences().eval(), torch.randn(2, 4, 15)
    edge_manager = to_edge(torch.export.export(model, (x,)))
    program = edge_manager.exported_program()
    program = edge_manager.transform([ConvertConv1dToConv2dPass(program)]).exported_program()
    torch.testing.assert_close(program.module()(x), model(x))


def test_a_weight_that_something_else_reads_keeps_its_shape() -> None:
    class TwoReaders(nn.Conv1d):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + self.weight.sum()

    program = lowered(TwoReaders(2, 3, 2), torch.ones(1, 2, 5))
    assert not ConvertConv1dToConv2dPass(program)(program.graph_module).modified


def test_computed_weights_need_permission() -> None:
    x, w = torch.randn(1, 2, 5), torch.randn(3, 2, 2)
    program = lowered(lambda x, w: F.conv1d(x, w.abs()), x, w)
    assert not ConvertConv1dToConv2dPass(program)(program.graph_module).modified
    allowed = ConvertConv1dToConv2dPass(program, [edge.abs.default])
    assert allowed(program.graph_module).modified
    torch.testing.assert_close(program.module()(x, w), F.conv1d(x, w.abs()))
