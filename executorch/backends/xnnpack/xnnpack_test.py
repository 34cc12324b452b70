"""Programs lowered here run here: both halves of the backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.lowered_backend_module import get_lowered_backend_modules
from executorch.exir.passes.external_constants_pass import (
    delegate_external_constants_pass_unlifted,
)
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from executorch.runtime import Runtime
from tests.interop.xnnpack_cases import CASES, Case, quantized_pt2e
from tests.interop.xnnpack_test import ROUNDINGS, STEP

FLOAT = [name for name, case in CASES.items() if case().recipe == "float"]
# Norms, masks, loops, and what the payload cannot say: half precision of some kinds, unknown
# extents.
PARTLY = (
    *("block", "block_half", "block_tanh", "conv_next", "patches", "rotary", "rotary_half"),
    *("parts_dynamic", "pools_half", "recurrent", "unary_half"),
)
STATIC = [n for n, case in CASES.items() if case().recipe in ("int8_static", "int8_per_tensor")]


@pytest.mark.parametrize("name", FLOAT)
def test_floating_point_programs_agree_with_eager(name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    module = case.module.eval()
    with torch.no_grad():
        program = torch.export.export(module, case.inputs, dynamic_shapes=case.dynamic_shapes)
        lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        left = get_delegation_info(lowered.exported_program().graph_module).left_out
        assert bool(left) == (name in PARTLY), [(each.op_type, each.reason) for each in left]
        method = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
        assert method is not None
        for inputs in [case.inputs, *case.more]:
            expected = torch.utils._pytree.tree_leaves(module(*inputs))
            for got, want in zip(method.execute(inputs), expected, strict=True):
                # A few hundred roundings in a row in float; in half precision one for each node.
                steps = 400 if want.dtype == torch.float32 else 8
                scale = float(want.abs().max()) * steps if want.is_floating_point() else 0.0
                eps = torch.finfo(want.dtype).eps if want.is_floating_point() else 0.0
                torch.testing.assert_close(got, want, rtol=0, atol=scale * eps, check_stride=False)


class Adapted(nn.Module):
    """A layer, and a correction that is kept in a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.low, self.high = nn.Linear(16, 8), nn.Linear(16, 2), nn.Linear(2, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.base(x)) + self.high(self.low(x))


@pytest.mark.parametrize("in_files", [("low", "high"), ("base", "low", "high")])
def test_tagged_constants_lie_in_a_file_of_their_own(
    in_files: tuple[str, ...], tmp_path: Path
) -> None:
    module, inputs = Adapted().eval(), (torch.randn(3, 16),)
    unlifted = torch.export.export(module, inputs).module()
    delegate_external_constants_pass_unlifted(
        unlifted, lambda node: "adapter" if str(node.target).split(".")[0] in in_files else None
    )
    lowered = to_edge_transform_and_lower(
        torch.export.export(unlifted, inputs), partitioner=[XnnpackPartitioner()]
    ).to_executorch()
    lowered.write_tensor_data_to_file(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["adapter.ptd"]
    data = (tmp_path / "adapter.ptd").read_bytes()
    for name, weights in module.state_dict().items():
        inside = weights.numpy().tobytes() in (data if name.split(".")[0] in in_files else b"")
        assert inside == (weights.numpy().tobytes() not in bytes(lowered.buffer)), name
    result = _load_for_executorch_from_buffer(lowered.buffer, data).forward(inputs)[0]
    torch.testing.assert_close(result, module(*inputs), rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError):
        _load_for_executorch_from_buffer(lowered.buffer).forward(inputs)


def _lower_static(name: str, fold: bool) -> tuple[torch.nn.Module, tuple, Any]:
    torch.manual_seed(0)
    case = CASES[name]()
    case.module.eval()
    with torch.no_grad():
        module = quantized_pt2e(case, fold)
        program = torch.export.export(module, case.inputs)
    return module, case.inputs, program


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "unfolded"])
@pytest.mark.parametrize("name", STATIC)
def test_static_8_bit_programs_are_one_delegate_and_agree_with_eager(name: str, fold: bool) -> None:
    module, inputs, program = _lower_static(name, fold)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    count = get_delegation_info(edge.exported_program().graph_module).num_delegated_subgraphs
    # Norms and masks are left out of what is no CNN.
    assert (count == 1) == (name not in ("block_int8", "patches_int8"))
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    results = torch.utils._pytree.tree_leaves(module(*inputs))
    for got, want in zip(method.execute(inputs), results, strict=True):
        # The sums are exact here and rounded there: two calls in a row may each miss by one step.
        atol = float(want.abs().max()) * 2 / 127
        torch.testing.assert_close(got, want, rtol=0, atol=atol, check_stride=False)


class Shifted(nn.Module):
    """Integers that are constant beside those that are computed, in both layouts."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.shift, self.factor = (
            nn.Parameter(torch.randn(1, 4, 5, 1)),
            nn.Parameter(torch.randn(4)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x) + self.shift).permute(0, 2, 3, 1) * self.factor


def test_constant_operands_of_integer_calls_are_integers() -> None:
    torch.manual_seed(0)
    case = Case(Shifted().eval(), (torch.randn(2, 3, 5, 4),), recipe="int8_static")
    with torch.no_grad():
        module = quantized_pt2e(case)
        program = torch.export.export(module, case.inputs)
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        info = get_delegation_info(edge.exported_program().graph_module)
        assert (info.num_delegated_subgraphs, info.left_out) == (1, [])
        method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
        want = module(*case.inputs)
    assert method is not None
    # As above: two calls in a row may each miss by one step.
    atol = float(want.abs().max()) * 2 / 127
    torch.testing.assert_close(
        method.execute(case.inputs)[0], want, rtol=0, atol=atol, check_stride=False
    )


@pytest.mark.parametrize("name", ["conv_int8_dynamic", "images_int8_dynamic"])
def test_dynamic_8_bit_convolutions_agree_with_eager_image_by_image(name: str) -> None:
    module, inputs, program = _lower_static(name, fold=True)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    (delegate,) = get_lowered_backend_modules(edge.exported_program().graph_module)
    calls = [str(n.target) for n in delegate.original_module.graph.nodes]
    assert sum("choose_qparams" in call for call in calls) == 2
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    (got,) = method.execute(inputs)
    # Eager takes one scale for the batch; a program has one for each image.
    with torch.no_grad():
        want = torch.cat([module(image[None].repeat(2, 1, 1, 1))[:1] for image in inputs[0]])
    # A value between two layers may be rounded to the other side of half a step of 8 bits.
    atol = float(want.abs().max()) * (STEP + ROUNDINGS * 2**-23)
    torch.testing.assert_close(got, want, rtol=0, atol=atol, check_stride=False)


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "unfolded"])
def test_dynamic_8_bit_products_with_matrices_agree_with_eager_row_by_row(fold: bool) -> None:
    module, (x,), program = _lower_static("matrices_int8_dynamic", fold)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    info = get_delegation_info(edge.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.num_non_delegated_nodes) == (1, 1)
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    (got,) = method.execute((x,))
    # Eager takes one scale for all rows: one row at a time, among zeros, which every range has.
    want = torch.zeros_like(got)
    for place in torch.cartesian_prod(*map(torch.arange, x.shape[:2])).tolist():
        alone = torch.zeros_like(x)
        alone[tuple(place)] = x[tuple(place)]
        with torch.no_grad():
            want[tuple(place)] = module(alone)[tuple(place)]
    atol = float(want.abs().max()) * (STEP + ROUNDINGS * 2**-23)
    torch.testing.assert_close(got, want, rtol=0, atol=atol, check_stride=False)


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "unfolded"])
@pytest.mark.parametrize("name", ["mlp_int8", "mlp_int8_dynamic"])
def test_quantized_layers_that_were_decomposed_are_taken(name: str, fold: bool) -> None:
    _, _, program = _lower_static(name, fold)
    edge = to_edge(program).to_backend(XnnpackPartitioner())
    info = get_delegation_info(edge.exported_program().graph_module)
    assert (info.num_delegated_subgraphs, info.num_non_delegated_nodes) == (1, 1)


def test_the_tanh_approximation_of_gelu_is_left_out_with_its_reason() -> None:
    program = torch.export.export(nn.GELU(approximate="tanh"), (torch.ones(3),))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    (left,) = get_delegation_info(edge.exported_program().graph_module).left_out
    assert "tanh" in left.reason


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.ConvTranspose2d(1, 1, 1, stride=65535, padding=32767), (1, 1, 2, 2)),
        (nn.MaxPool2d((1, 70_000), padding=(0, 35_000)), (1, 2, 2, 70_001)),
        (nn.Conv2d(1, 2, 2, dilation=30_000, padding=15_000), (1, 1, 2, 2)),
    ],
)
def test_windows_out_of_proportion_agree_with_eager(module: nn.Module, shape: tuple) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    program = torch.export.export(module.eval(), (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    assert get_delegation_info(edge.exported_program().graph_module).num_delegated_subgraphs == 1
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    with torch.no_grad():
        torch.testing.assert_close(method.execute((x,))[0], module(x), check_stride=False)


class HalfAndBack(nn.Module):
    """A skip connection around a pooling: torch says that 2 * (n // 2) must be n."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = nn.functional.max_pool2d(x, 2)
        large = nn.functional.interpolate(small, scale_factor=2, mode="bilinear")
        return torch.cat([x, large + x], 1)


def test_extents_that_are_equal_may_have_unequal_upper_bounds() -> None:
    sizes = {2: torch.export.Dim.AUTO(max=511), 3: torch.export.Dim.AUTO(max=63)}
    x = torch.randn(1, 2, 8, 12)
    program = torch.export.export(HalfAndBack(), (x,), dynamic_shapes=(sizes,))
    lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    left = get_delegation_info(lowered.exported_program().graph_module).left_out
    assert not [call.op_type for call in left if call.op_type.startswith(("add", "cat"))]
    method = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
    assert method is not None
    for given in (x, torch.randn(1, 2, 510, 62), torch.randn(1, 2, 2, 4)):
        torch.testing.assert_close(method.execute([given])[0], HalfAndBack()(given))


def test_sums_of_too_many_integers_are_left_out_with_their_reason() -> None:
    case = Case(nn.Linear(65_001, 2), (torch.randn(1, 65_001),), recipe="int8_static")
    case.module.eval()
    with torch.no_grad():
        program = torch.export.export(quantized_pt2e(case), case.inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    left = get_delegation_info(edge.exported_program().graph_module).left_out
    assert any("65,000" in call.reason for call in left)


def test_nodes_of_the_payload_know_the_operators_they_stand_for() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(8, 16)
            self.out = nn.Linear(16, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.out(torch.relu(self.hidden(x))))

    exported = torch.export.export(Two(), (torch.randn(2, 8),))
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    program = edge.to_executorch()
    given = program.delegate_map["forward"][0]["delegate_map"]
    assert list(given) == ["FullyConnected #0", "FullyConnected #1", "Sigmoid #2"]
    # The first layer computes its relu as well; together the nodes have every handle once.
    assert [len(handles) for handles in given.values()] == [2, 1, 1]
    handles = [h for each in given.values() for h in each]
    assert sorted(handles) == sorted(program.debug_handle_map["forward"][0])
