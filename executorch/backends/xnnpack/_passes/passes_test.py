from __future__ import annotations

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack._passes import XNNPACKPassManager
from executorch.backends.xnnpack._passes.convert_to_linear import ConvertToLinearPass
from executorch.backends.xnnpack._passes.decompose_batch_norm import DecomposeBatchNorm
from executorch.backends.xnnpack._passes.decompose_cat import DecomposeConcatenate
from executorch.backends.xnnpack._passes.fuse_activation_pass import FuseActivationPass
from executorch.backends.xnnpack._passes.fuse_batch_norm import FuseBatchNormPass
from executorch.backends.xnnpack._passes.insert_pad_qdq import InsertPadQDQPass
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.utils.quant_utils import (
    validate_quant_scales,
    validate_quant_zeropoints,
)
from executorch.backends.xnnpack.utils.utils import normalize_mean_dims
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge
from executorch.exir.dialects._ops import ops
from executorch.runtime import Runtime

aten = ops.edge.aten


def targets(program: torch.export.ExportedProgram) -> list[object]:
    return [n.target for n in program.graph.nodes if n.op == "call_function"]


class Cat(nn.Module):
    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return torch.cat(xs, 1)


class Regrouped(nn.Module):
    """A product whose operand has other rows than the value it is a view of."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x.view(12, 4), self.weight.t()).view(2, 3, 10)


class Maxima(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(nn.functional.max_pool2d(x, 2).clone(), 1).values


X = torch.randn(2, 3, 8)
IMAGE = torch.randn(2, 3, 6, 6)
CASES = {  # module, inputs, passes (all if empty), what is there afterwards, what is not
    "linear": (nn.Linear(8, 4), (X,), [ConvertToLinearPass], aten.linear.default, aten.addmm),
    "linear without bias": (
        nn.Linear(8, 4, bias=False),
        (X[0],),
        [ConvertToLinearPass],
        aten.linear.default,
        aten.mm,
    ),
    "product of other rows": (
        Regrouped(),
        (X,),
        [ConvertToLinearPass],
        aten.linear.default,
        aten.mm,
    ),
    "batch norm": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval(),
        (IMAGE,),
        [FuseBatchNormPass],
        aten.convolution.default,
        aten._native_batch_norm_legit_no_training,
    ),
    "cat": (Cat(), (X,) * 12, [DecomposeConcatenate], aten.cat.default, aten.stack),
    "maxima": (Maxima(), (IMAGE,), [], aten.amax.default, aten.max),
    "all": (nn.Sequential(nn.Linear(8, 8), nn.ReLU()), (X,), [], aten.linear.default, aten.addmm),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pass_keeps_the_values(case: str) -> None:
    module, inputs, passes, there, gone = CASES[case]
    program = to_edge(torch.export.export(module, inputs)).exported_program()
    program = XNNPACKPassManager(program, passes).transform()
    found = targets(program)
    assert there in found
    assert not [t for t in found if str(t).startswith(str(gone))] or case == "maxima"
    if case == "cat":
        assert max(len(n.args[0]) for n in program.graph.nodes if n.target is there) == 5
    with torch.no_grad():
        torch.testing.assert_close(program.module()(*inputs), module(*inputs))


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_batch_norm_becomes_a_convolution(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    norm = (nn.BatchNorm2d(3) if len(shape) == 4 else nn.BatchNorm1d(3)).train()
    norm(torch.randn(shape) * 2 + 1)
    norm, x = norm.eval().to(dtype), torch.randn(shape, dtype=dtype)
    program = to_edge(torch.export.export(norm, (x,))).exported_program()
    program = XNNPACKPassManager(program, [DecomposeBatchNorm]).transform()
    found = targets(program)
    assert found.count(aten.convolution.default) == 1
    assert aten._native_batch_norm_legit_no_training.default not in found
    with torch.no_grad():
        truth = norm.double()(x.double())
        got = program.module()(x)
    # A product and a sum of rounded numbers.
    bound = 4 * torch.finfo(dtype).eps * (truth.abs().max() + norm.running_mean.abs().max() + 1)
    assert got.dtype is dtype
    assert float((got.double() - truth).abs().max()) <= bound


def test_the_backend_reads_the_bounds_of_a_fused_activation() -> None:
    class Clamped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = nn.functional.hardtanh(self.conv(x), -0.25, 0.5)
            return nn.functional.relu(self.linear(y)) + nn.functional.relu(y - 0.125)

    module = Clamped().eval()
    check = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(torch.export.export(module, (IMAGE,)), compile_config=check)
    program = XNNPACKPassManager(
        edge.exported_program(), [ConvertToLinearPass, FuseActivationPass]
    ).transform()
    assert not set(FuseActivationPass.FUSEABLE_ACTIVATIONS) & set(targets(program))
    fused = [FuseActivationPass.get_fused_activation(n) for n in program.graph.nodes]
    assert sorted(filter(None, fused)) == [
        (-0.25, 0.5),
        (0.0, float("inf")),
        (0.0, float("inf")),
    ]
    lowered = EdgeProgramManager(program).to_backend(XnnpackPartitioner())
    (call,) = targets(lowered.exported_program())[:1]
    assert "call_delegate" in str(call)
    loaded = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
    with torch.no_grad():
        torch.testing.assert_close(loaded.execute([IMAGE])[0], module(IMAGE))


def test_a_quantized_pad_is_quantized_once() -> None:
    q = torch.ops.quantized_decomposed

    x, quantize = torch.randn(1, 2, 4, 4), ops.edge.quantized_decomposed.quantize_per_tensor.default

    class Pads(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            qparams = (0.05, 3, -128, 127, torch.int8)
            y = q.dequantize_per_tensor(q.quantize_per_tensor(x, *qparams), *qparams)
            zeros = nn.functional.pad(y, (0, 1, 0, 1))
            return zeros, nn.functional.pad(y, (1, 0), value=2.0)

    edge = to_edge(torch.export.export(Pads(), (x,))).exported_program()
    program = XNNPACKPassManager(edge, [InsertPadQDQPass, InsertPadQDQPass]).transform()
    assert targets(program).count(quantize) == 2
    for got, expected in zip(program.module()(x), Pads()(x), strict=True):
        assert torch.equal(got, expected)


def test_invalid_quantization_is_refused_with_its_place() -> None:
    q = torch.ops.quantized_decomposed

    class Quantized(nn.Module):
        def __init__(self, scale: float, zero_point: int) -> None:
            super().__init__()
            self.qparams = (scale, zero_point, -128, 127, torch.int8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return q.dequantize_per_tensor(q.quantize_per_tensor(x, *self.qparams), *self.qparams)

    for scale, zero_point, said in (
        (float("inf"), 0, "Scales must be finite and normal"),
        (1e-39, 0, "Scales must be finite and normal"),
        (0.1, 128, "invalid zeropoint 128"),
    ):
        edge = to_edge(torch.export.export(Quantized(scale, zero_point), (X,)))
        with pytest.raises(ValueError, match=f"quantize_per_tensor_default: .*{said}"):
            edge.to_backend(XnnpackPartitioner())
    validate_quant_scales(torch.tensor([0.5, 1e-10]))
    with pytest.raises(ValueError, match="invalid zeropoint"):
        validate_quant_zeropoints(16, torch.int8, is_4bit=True)
    with pytest.raises(ValueError, match="out of range"):
        normalize_mean_dims([3], 3)
    assert normalize_mean_dims(-1, 3) == [2]
