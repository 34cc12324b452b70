import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 (registers the operators)

from executorch.exir.passes import FoldRedundantDequantizeQuantizePass
from executorch.exir.testing import hand_made, targets

qd = torch.ops.quantized_decomposed
aten = torch.ops.aten
PARAMETERS = (0.1, 3, -128, 127, torch.int8)


def after(second, also_read=False):
    def build(call, x):
        q = call(qd.quantize_per_tensor.default, x, *PARAMETERS)
        y = call(qd.dequantize_per_tensor.default, q, *PARAMETERS)
        r = call(qd.quantize_per_tensor.default, y, *second)
        z = call(qd.dequantize_per_tensor.default, r, *second)
        return (z, call(aten.relu.default, y)) if also_read else z

    gm = hand_made(build, torch.randn(4))
    gm = FoldRedundantDequantizeQuantizePass()(gm).graph_module
    return [t.split(".")[1] for t in targets(gm)]


def test_pair_with_equal_parameters_goes():
    assert after(PARAMETERS) == ["quantize_per_tensor", "dequantize_per_tensor"]


def test_pair_with_other_parameters_stays():
    assert len(after((0.2, *PARAMETERS[1:]))) == 4


def test_dequantize_with_another_reader_stays_for_it():
    assert after(PARAMETERS, also_read=True).count("dequantize_per_tensor") == 2
