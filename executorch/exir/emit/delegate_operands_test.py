"""Operands of delegates have the order of dims that was lowered, or the call is named."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from executorch.backends.xnnpack import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.delegate import delegate_calls, lowered_module_of
from executorch.exir.emit._delegate_operands import check_operands
from executorch.exir.tensor import TensorSpec


def lowered_call(x: torch.Tensor) -> tuple[torch.fx.Node, Any]:
    program = torch.export.export(torch.nn.Conv2d(x.shape[1], 4, 1), (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    module = edge.exported_program().graph_module
    (call,) = delegate_calls(module.graph)
    return call, lowered_module_of(call, module)


def give(call: torch.fx.Node, value: torch.Tensor) -> None:
    call.all_input_nodes[1].meta["spec"] = TensorSpec.from_tensor(value)


def test_another_order_is_refused() -> None:
    x = torch.ones(2, 3, 5, 5)
    call, lowered = lowered_call(x)
    give(call, x)
    check_operands(call, lowered)
    give(call, x.to(memory_format=torch.channels_last))
    with pytest.raises(
        ValueError, match=r"operand 0 \(input\).*\[0, 2, 3, 1\], but XnnpackBackend was"
    ):
        check_operands(call, lowered)


def test_dims_of_extent_1_may_stand_anywhere() -> None:
    x = torch.ones(2, 1, 5, 5)
    call, lowered = lowered_call(x)
    spec = TensorSpec.from_tensor(x)
    spec.dim_order = (0, 2, 3, 1)
    call.all_input_nodes[1].meta["spec"] = spec
    check_operands(call, lowered)
