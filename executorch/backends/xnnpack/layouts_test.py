"""Images in either layout, padded ones, and integer weights of layers that compute in floats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import export
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackFloatingPointPartitioner,
    XnnpackPartitioner,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.xnnpack.serialization import _native
from executorch.devtools import Inspector
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import get_lowered_backend_modules
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from executorch.runtime import Runtime

NHWC = torch.channels_last


def lowered(module, inputs, partitioner=None, **options):
    program = export(module, inputs, **options)
    return to_edge_transform_and_lower(program, partitioner=[partitioner or XnnpackPartitioner()])


def called(edge):
    """Names of what is called beside getitem."""
    names = [str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    return [n for n in names if "getitem" not in n]


def run(edge, *inputs):
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    return method.execute(list(inputs))


def quantized(module, inputs, **config):
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**config))
    prepared = prepare_pt2e(export(module, inputs, strict=True).module(), quantizer)
    prepared(*inputs)
    return convert_pt2e(prepared)


def kinds(edge):
    """The kinds of the nodes of the only payload."""
    (module,) = get_lowered_backend_modules(edge.exported_program().graph_module)
    nodes = json.loads(_native.read_payload(module.processed_bytes))["xnodes"]
    return [node["xnode_union_type"] for node in nodes]


def step(y):
    return float(y.abs().max()) / 127


class Normed(nn.Module):
    def __init__(self, with_conv: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1) if with_conv else nn.Identity()
        self.norm = nn.BatchNorm2d(4 if with_conv else 3)
        self.norm.running_mean.uniform_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


class Mixed(nn.Module):
    """Results of both layouts, of operands of both."""

    def forward(self, x, y):
        z = x * 2 + y
        return z, torch.cat([y, y.abs()], 1), y.relu(), x.clone()


@pytest.mark.parametrize("with_conv", [False, True], ids=["alone", "behind a convolution"])
def test_batch_norms_of_channels_last_images_are_taken(with_conv: bool) -> None:
    torch.manual_seed(0)
    model = Normed(with_conv).eval()
    x = torch.randn(2, 3, 5, 6).to(memory_format=NHWC)
    edge = lowered(model, (x,))
    assert called(edge) == ["executorch_call_delegate"]
    (y,) = run(edge, x)
    torch.testing.assert_close(y, model(x), rtol=1e-5, atol=1e-5, check_stride=False)
    assert y.dim_order() == (0, 2, 3, 1)


def test_values_keep_their_layout_across_the_call() -> None:
    model = Mixed()
    x = torch.randn(2, 3, 4, 5).to(memory_format=NHWC)
    y = torch.randn(2, 3, 4, 5)
    edge = lowered(model, (x, y))
    assert set(called(edge)) == {"executorch_call_delegate"}
    for got, want in zip(run(edge, x, y), model(x, y), strict=True):
        torch.testing.assert_close(got, want, check_stride=False)
        assert got.dim_order() == want.dim_order()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (1, 2, 3, 4)])
def test_clones_are_taken(shape: tuple[int, ...]) -> None:
    class Cloned(nn.Module):
        def forward(self, x):
            return x.clone()

    x = torch.randn(shape)
    edge = lowered(Cloned(), (x,))
    assert called(edge) == ["executorch_call_delegate"]
    assert torch.equal(run(edge, x)[0], x)


def test_copies_into_another_dim_order_stay() -> None:
    class Transposed(nn.Module):
        def forward(self, x):
            return x.clone(memory_format=NHWC)

    edge = lowered(Transposed(), (torch.randn(1, 2, 3, 4),))
    assert ["_clone_dim_order" in name for name in called(edge)] == [True]


@pytest.mark.parametrize("groups", [1, 2], ids=["full", "depthwise"])
@pytest.mark.parametrize("kernel", [(4, 4), (2, 3), (2,), (4,)], ids=str)
def test_padding_of_an_even_window_is_the_convolutions(kernel: tuple[int, ...], groups) -> None:
    torch.manual_seed(0)
    layer, x = (nn.Conv1d, nn.Conv2d)[len(kernel) - 1], torch.randn(1, 2, 7, 8)
    x = x if len(kernel) == 2 else x[..., 0]
    conv = layer(2, 4, kernel, padding="same", groups=groups).eval()
    model = quantized(conv, (x,))
    edge = lowered(model, (x,), strict=True)
    assert called(edge) == ["executorch_call_delegate"]
    y = model(x)
    torch.testing.assert_close(run(edge, x)[0], y, rtol=0, atol=1.01 * step(y), check_stride=False)


class Clamped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(6, 5)

    def forward(self, x):
        y = self.conv(x)
        return self.linear((y + y).relu()), y


@pytest.mark.parametrize("bounds", [(-127, 127), (-100, 90)], ids=str)
def test_results_in_a_part_of_the_range_are_computed_in_integers(bounds: tuple[int, int]) -> None:
    torch.manual_seed(0)
    low, high = bounds
    module, x = Clamped().eval(), torch.randn(2, 3, 5, 6)
    model = quantized(module, (x,), act_qmin=low, act_qmax=high)
    edge = lowered(model, (x,), strict=True)
    assert called(edge) == ["executorch_call_delegate"]
    assert kinds(edge).count("XNNConvert") == 3
    large = 4 * x  # beyond what was seen, so that the ends of the range are met
    for want, got in zip(model(large), run(edge, large), strict=True):
        width = float(want.max() - want.min()) / (high - low)
        torch.testing.assert_close(got, want, rtol=0, atol=1.01 * width, check_stride=False)


def test_images_of_one_channel_are_convolved_as_others() -> None:
    torch.manual_seed(0)
    conv, x = nn.Conv2d(1, 6, 3, padding=1).eval(), torch.randn(2, 1, 9, 8)
    edge = lowered(conv, (x,))
    assert "XNNConv2d" in kinds(edge)
    torch.testing.assert_close(run(edge, x)[0], conv(x))
    edge = lowered(quantized(conv, (x,), is_per_channel=True), (x,))
    assert (run(edge, x)[0] - conv(x)).abs().max() <= 4 * step(conv(x))


def test_transposed_filters_with_one_output_channel_are_taken() -> None:
    torch.manual_seed(0)
    conv, x = nn.ConvTranspose2d(2, 1, 3, 2, 1).eval(), torch.randn(1, 2, 8, 8)
    model = quantized(conv, (x,), is_per_channel=True)
    edge = lowered(model, (x,), strict=True)
    assert called(edge) == ["executorch_call_delegate"]
    y = model(x)
    torch.testing.assert_close(run(edge, x)[0], y, rtol=0, atol=1.01 * step(y), check_stride=False)


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("layer", [nn.Linear(6, 5), nn.Conv2d(6, 5, 3)], ids=["linear", "conv"])
def test_integer_weights_may_be_computed_with_in_floats(layer: nn.Module, is_dynamic: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 6) if isinstance(layer, nn.Linear) else torch.randn(2, 6, 5, 5)
    model = quantized(layer.eval(), (x,), is_per_channel=True, is_dynamic=is_dynamic)
    edge = lowered(model, (x,), XnnpackFloatingPointPartitioner(), strict=True)
    names = called(edge)
    assert names.count("executorch_call_delegate") == 1
    assert not any("linear" in n or "convolution" in n or "per_channel" in n for n in names)
    assert any("quantize_per_tensor" in n for n in names)
    y = model(x)
    torch.testing.assert_close(run(edge, x)[0], y, rtol=0, atol=1.01 * step(y), check_stride=False)


class Steps(nn.Module):
    """Reads a folded constant of one column and row: its strides do not tell its layout."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.register_buffer("steps", torch.arange(8).view(1, -1, 1, 1))

    def forward(self, x):
        return self.steps * self.conv(x).select(1, 0).unsqueeze(1)


def test_constants_of_one_pixel_keep_the_layout_that_the_payload_was_written_for():
    model = Steps().eval().to(memory_format=NHWC)
    x = torch.randn(2, 3, 4, 5).to(memory_format=NHWC)
    torch.testing.assert_close(run(lowered(model, (x,)), x)[0], model(x))


class Pooled(nn.Module):
    """What XNNPACK leaves, a pool with another divisor, gives contiguous images."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 3)

    def forward(self, x):
        return self.second(nn.functional.avg_pool2d(self.first(x), 2, divisor_override=3))


def test_payloads_get_images_in_their_order_from_kernels_that_write_contiguous_ones():
    model = Pooled().eval().to(memory_format=NHWC)
    x = torch.randn(2, 3, 7, 9).to(memory_format=NHWC)
    edge = lowered(model, (x,))
    assert ["delegate" in name for name in called(edge)] == [True, False, True]
    torch.testing.assert_close(run(edge, x)[0], model(x))


class Branching(nn.Module):
    """Views of channels-last images are channels-last where the branches were traced; the copies
    that they become are contiguous."""

    def forward(self, x):
        y = x.expand(4, 3, 6, 7).sin()
        return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (y,))


def test_payloads_in_branches_get_images_in_their_order():
    x = torch.randn(1, 3, 6, 7).to(memory_format=NHWC)
    edge = lowered(Branching(), (x,))
    for each in (x, x.abs(), -x.abs()):
        torch.testing.assert_close(run(edge, each)[0], Branching()(each))


class Rows(nn.Module):
    """Convolutions in one dim, and operators that name dims or channels, of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(3, 8, 5, padding=2), nn.Conv1d(7, 4, 3, 2)
        self.bend = nn.PReLU(8)
        self.scale = nn.Parameter(torch.rand(8, 1))

    def forward(self, x):
        y = self.bend(self.first(x)) * self.scale
        a, b = torch.cat([y, x * y[:, :3]], 1)[:, :10].chunk(2, 1)
        z = torch.cat([nn.functional.pad(a, (1, 2), value=0.5)[..., 3:], b[:, 1:3].tanh()], 1)
        return self.last(z), z.mean(-1), y.transpose(1, 2) + x.sum(1)[..., None]


class Images(nn.Module):
    """Down and up again, with each kind of operator that keeps images as planes."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.mid = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(8, 6, 2, 2), nn.Conv2d(22, 3, 1)
        self.bend = nn.PReLU(8)

    def forward(self, x):
        down = self.bend(self.down(x))
        small = self.mid(nn.functional.avg_pool2d(down, 2)).relu()
        wide = nn.functional.interpolate(small, scale_factor=2, mode="bilinear")
        wide = wide - nn.functional.interpolate(
            small, scale_factor=2, mode="bilinear", align_corners=True
        )
        joined = torch.cat([down, self.up(small), wide], 1)
        return self.last(joined), joined[:, 5:9] + nn.functional.pad(x, (0, 0, 0, 0, 1, 0))


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "images"])
def test_networks_of_planes_agree_with_eager(rows: bool) -> None:
    torch.manual_seed(0)
    model = (Rows if rows else Images)().eval()
    size = (2, 3, 40) if rows else (2, 3, 16, 24)
    length = torch.export.Dim("length", min=10, max=64)
    shapes = {"dynamic_shapes": ({2: length},)} if rows else {}
    edge = lowered(model, (torch.randn(size),), **shapes)
    assert any("call_delegate" in name for name in called(edge))
    for n in (40, 11, 64) if rows else (16,):
        x = torch.randn(2, 3, n) if rows else torch.randn(size)
        for found, expected in zip(run(edge, x), model(x), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


class Halves(nn.Module):
    """Its halves are swapped in NCHW, behind a convolution whose result is kept as planes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        return y.mean((2, 3)), torch.cat([y[:, 2:], y[:, :2]], 1)


@pytest.mark.parametrize("model", [Halves, Images])
def test_logged_values_are_images_as_the_model_has_them(model, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = model().eval(), torch.randn(2, 3, 16, 24)
    program = to_edge_transform_and_lower(
        export(module, (x,)), partitioner=[XnnpackPartitioner()], generate_etrecord=True
    ).to_executorch()
    record = program.get_etrecord()
    record.update_representative_inputs([x])
    dump, values = str(tmp_path / "dump"), str(tmp_path / "values")
    loaded = _load_for_executorch_from_buffer(
        program.buffer, enable_etdump=True, debug_buffer_size=1 << 20
    )
    loaded.forward([x])
    loaded.write_etdump_result_to_file(dump, values)
    inspector = Inspector(etdump_path=dump, etrecord=record, debug_buffer_path=values)
    gaps = inspector.calculate_numeric_gap("MSE")
    names = {name for row in gaps["runtime_ops"] for name in row}
    assert any("Conv2d" in name for name in names) and any("Concat" in name for name in names)
    assert max(gap for row in gaps["gap"] for gap in row) < 1e-10


class Rising(nn.Module):
    """A transposed convolution in one dim, with what is folded into it."""

    def __init__(self, **options) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv1d(8, 12, 3, padding=1), nn.BatchNorm1d(6)
        self.norm.running_mean.uniform_()
        self.rise = nn.ConvTranspose1d(12, 6, **options)

    def forward(self, x):
        return self.norm(self.rise(self.first(x).relu())).relu()


RISES = [
    {"kernel_size": 4, "stride": 2, "padding": 1},
    {"kernel_size": 5, "stride": 3, "padding": 1, "output_padding": 2},
    {"kernel_size": 3, "dilation": 2, "groups": 3},
]


@pytest.mark.parametrize("options", RISES, ids=["overlapping", "longer", "dilated groups"])
def test_transposed_convolutions_in_one_dim_are_taken(options: dict[str, int]) -> None:
    torch.manual_seed(0)
    model = Rising(**options).eval()
    length = torch.export.Dim("length", min=4, max=64)
    edge = lowered(model, (torch.randn(2, 8, 20),), dynamic_shapes=({2: length},))
    assert called(edge) == ["executorch_call_delegate"]
    for n in (20, 7, 64):
        x = torch.randn(2, 8, n)
        torch.testing.assert_close(run(edge, x)[0], model(x))


def test_quantized_transposed_convolutions_in_one_dim_are_taken() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 8, 20)
    model = quantized(Rising(**RISES[1]).eval(), (x,), is_per_channel=True)
    edge = lowered(model, (x,))
    assert called(edge) == ["executorch_call_delegate"]
    expected = model(x)
    assert (run(edge, x)[0] - expected).abs().max() <= 1.01 * step(expected)


class Gated(nn.Module):
    """Convolutions around what need not leave their layout: gates of channels, numbers, halves and
    padding."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 2)
        self.gate, self.mid = nn.Conv2d(8, 8, 1), nn.Conv2d(4, 4, 1)
        self.scale = nn.Parameter(torch.rand(1, 8, 1, 1))

    def forward(self, x):
        x = self.first(x).relu()
        x = self.gate(x.mean((2, 3), keepdim=True)).sigmoid() * x * self.scale * 0.5
        a, b = x.chunk(2, 1)
        x = torch.cat([self.mid(a), b], 1)
        return self.last(nn.functional.pad(x, (1, 2, 0, 1)))


@pytest.mark.parametrize("is_quantized", [False, True], ids=["floats", "integers"])
def test_images_keep_their_layout_between_convolutions(is_quantized: bool) -> None:
    torch.manual_seed(0)
    model, x = Gated().eval(), torch.randn(2, 3, 9, 8)
    model = quantized(model, (x,), is_per_channel=True) if is_quantized else model
    edge = lowered(model, (x,))
    assert called(edge) == ["executorch_call_delegate"]
    assert kinds(edge).count("XNNStaticTranspose") == 2  # of the input and of the result
    # Between the first and the last only the sigmoid is computed in floats.
    assert kinds(edge).count("XNNConvert") == (4 if is_quantized else 0)
    expected = model(x)
    atol = 2.01 * step(expected) if is_quantized else 1e-5
    torch.testing.assert_close(run(edge, x)[0], expected, rtol=1e-5, atol=atol)


POOLS = [
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True},
    {"kernel_size": (2, 3), "stride": (3, 2), "padding": (0, 1), "count_include_pad": False},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (3, 4), "stride": (2, 3), "padding": (0, 2), "ceil_mode": True},
]


@pytest.mark.parametrize("size", [(8, 9), (7, 10)], ids=str)
@pytest.mark.parametrize("is_quantized", [False, True], ids=["floats", "integers"])
@pytest.mark.parametrize("options", POOLS, ids=str)
def test_averages_stay_in_the_delegate(options, is_quantized, size) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, *size)
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AvgPool2d(**options), nn.Conv2d(4, 5, 1)).eval()
    model = quantized(model, (x,), is_per_channel=True) if is_quantized else model
    edge = lowered(model, (x,))
    assert called(edge) == ["executorch_call_delegate"]
    expected = model(x)
    atol = 2.01 * step(expected) if is_quantized else 1e-5
    torch.testing.assert_close(run(edge, x)[0], expected, rtol=1e-5, atol=atol)
