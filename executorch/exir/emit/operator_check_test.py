import pytest
import torch
from torch import nn
from torch.export import export

from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.emit._operator_check import known_operators
from executorch.exir.error import ExportError


class _Airy(nn.Module):
    def forward(self, x):
        return torch.special.airy_ai(x)


_AIRY = torch.ops.aten.special_airy_ai.default


def test_operator_of_the_exception_list_has_a_kernel_of_the_application():
    assert "aten::special_airy_ai.out" not in (known_operators() or ())
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[_AIRY])
    edge = to_edge(export(_Airy(), (torch.ones(3),)), compile_config=config)
    (plan,) = edge.to_executorch().executorch_program.execution_plan
    assert ("aten::special_airy_ai", "out") in [(op.name, op.overload) for op in plan.operators]


def test_operator_without_a_kernel_is_named():
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(export(_Airy(), (torch.ones(3),)), compile_config=config)
    with pytest.raises(ExportError, match="(?s)special_airy_ai.*_core_aten_ops_exception_list"):
        edge.to_executorch()
