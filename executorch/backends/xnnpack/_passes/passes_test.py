from __future__ import annotations

import pytest
import torch
from torch import nn

from executorch.backends.xnnpack._passes import XNNPACKPassManager
from executorch.backends.xnnpack._passes.convert_to_linear import ConvertToLinearPass
from executorch.backends.xnnpack._passes.decompose_cat import DecomposeConcatenate
from executorch.backends.xnnpack._passes.fuse_batch_norm import FuseBatchNormPass
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.utils.quant_utils import (
    validate_quant_scales,
    validate_quant_zeropoints,
)
from executorch.backends.xnnpack.utils.utils import normalize_mean_dims
from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops

aten = ops.edge.aten


def targets(program: torch.export.ExportedProgram) -> list[object]:
    return [n.target for n in program.graph.nodes if n.op == "call_function"]


class Cat(nn.Module):
    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return torch.cat(xs, 1)


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
