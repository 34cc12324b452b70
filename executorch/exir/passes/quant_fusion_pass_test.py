from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import export

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.dialects._ops import ops
from executorch.exir.passes.quant_fusion_pass import QuantFusionPass
from executorch.runtime import Runtime

q = torch.ops.quantized_decomposed
P, R = (0.05, 3, -128, 127, torch.int8), (0.1, -4, -128, 127, torch.int8)
ADD = ops.edge.quantized_decomposed.add.default


def fake(x: Tensor, qparams: tuple = P) -> Tensor:
    return q.dequantize_per_tensor(q.quantize_per_tensor(x, *qparams), *qparams)


class Computes(nn.Module):
    def __init__(self, f: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.f(x, y)


U = (0.05, 131, 0, 255, torch.uint8)
FUSED = {
    "sum": (lambda x, y: fake(fake(x) + fake(y, R), R), ADD),
    "broadcast sum": (lambda x, y: fake(fake(x) + fake(y[:1], R)), ADD),
    "unsigned sum": (lambda x, y: fake(fake(x, U) + fake(y, U), U), ADD),
    "view": (lambda x, y: fake(fake(x).reshape(-1)), ops.edge.aten.view_copy.default),
    "part": (lambda x, y: fake(fake(x)[1:]), ops.edge.aten.slice_copy.Tensor),
    "permuted": (lambda x, y: fake(fake(x).t()), ops.edge.aten.permute_copy.default),
    "joined": (lambda x, y: fake(torch.cat([fake(x), fake(y)], 1)), ops.edge.aten.cat.default),
    "joined to itself": (
        lambda x, y: (lambda z: fake(torch.cat([z, z])))(fake(x)),
        ops.edge.aten.cat.default,
    ),
}
LEFT = {
    "sum with a factor": lambda x, y: fake(torch.add(fake(x), fake(y), alpha=2)),
    "sum with a number": lambda x, y: fake(fake(x) + 1.0),
    "sum of two types": lambda x, y: fake(fake(x) + fake(y, U)),
    "sum with a float": lambda x, y: fake(fake(x) + y),
    "sum that others read": lambda x, y: (lambda z: fake(z) * z)(fake(x) + fake(y)),
    "view with other parameters": lambda x, y: fake(fake(x).reshape(-1), R),
    "product": lambda x, y: fake(fake(x) * fake(y)),
}


def targets(edge) -> list:
    return [n.target for n in edge.exported_program().graph.nodes if n.op == "call_function"]


def values_in_integers(edge, target) -> bool:
    (node,) = [n for n in edge.exported_program().graph.nodes if n.target is target]
    values = [n.meta["val"] for n in (node, *node.all_input_nodes)]
    return all(v.dtype in (torch.int8, torch.uint8) for v in values)


def edge_of(f: Callable, inputs: tuple[Tensor, ...]):
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(export(Computes(f), inputs), compile_config=config)


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("way", ["transform", "passes", "config"])
def test_calls_between_conversions_compute_with_integers(name: str, way: str) -> None:
    torch.manual_seed(0)
    f, target = FUSED[name]
    inputs = (torch.randn(3, 4), torch.randn(3, 4))
    edge = edge_of(f, inputs)
    config = ExecutorchBackendConfig()
    if way == "transform":
        edge = edge.transform([QuantFusionPass(_fix_node_meta_val=True)])
        assert values_in_integers(edge, target)
        assert torch.equal(edge.exported_program().module()(*inputs), f(*inputs))
    elif way == "passes":
        config = ExecutorchBackendConfig(passes=[QuantFusionPass()])
    else:
        config = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True)
    program = edge.to_executorch(config)
    names = [str(n.target) for n in program.exported_program().graph.nodes]
    assert any("quantized_decomposed.add.out" in n for n in names) == (target is ADD)
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    assert method is not None
    assert torch.equal(method.execute(inputs)[0], f(*inputs))


@pytest.mark.parametrize("name", LEFT)
def test_what_has_no_form_in_integers_stays(name: str) -> None:
    inputs = (torch.randn(3, 4), torch.randn(3, 4))
    edge = edge_of(LEFT[name], inputs)
    before = targets(edge)
    assert targets(edge.transform([QuantFusionPass()])) == before
