from __future__ import annotations

import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from executorch.backends.transforms.duplicate_dynamic_quant_chain import (
    DuplicateDynamicQuantChainPass,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)


class ThreeReaders(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.q(x) + self.k(x) * self.v(x)


def _converted(is_dynamic: bool) -> torch.fx.GraphModule:
    inputs = (torch.randn(2, 4),)
    captured = torch.export.export(ThreeReaders().eval(), inputs).module()
    config = get_symmetric_quantization_config(is_dynamic=is_dynamic)
    prepared = prepare_pt2e(captured, XNNPACKQuantizer().set_global(config))
    prepared(*inputs)
    return convert_pt2e(prepared)


def _count(graph_module: torch.fx.GraphModule, name: str) -> int:
    return sum(name in str(n.target) for n in graph_module.graph.nodes)


def test_every_reader_gets_a_chain_of_its_own() -> None:
    converted, x = _converted(is_dynamic=True), torch.randn(2, 4)
    expected = converted(x)
    assert _count(converted, "choose_qparams") == 1
    result = DuplicateDynamicQuantChainPass()(converted)
    assert result.modified and result.graph_module is converted
    assert _count(converted, "choose_qparams") == 3
    for node in converted.graph.nodes:
        if "dequantize_per_tensor.tensor" in str(node.target):
            assert len(node.users) == 1
    assert torch.equal(converted(x), expected)


def test_a_second_time_changes_nothing() -> None:
    converted = _converted(is_dynamic=True)
    DuplicateDynamicQuantChainPass()(converted)
    assert not DuplicateDynamicQuantChainPass()(converted).modified


def test_static_quantization_is_left() -> None:
    assert not DuplicateDynamicQuantChainPass()(_converted(is_dynamic=False)).modified
