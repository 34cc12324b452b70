"""Operators that several rules know, by what they do to a mask or to scores."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

aten = torch.ops.aten

KEEP = {
    aten.to.dtype, aten.to.dtype_layout, aten._to_copy.default,
    aten.to.device, aten.dropout.default, aten.lift_fresh_copy.default,
}  # fmt: skip
TIMES = {aten.mul.Tensor, aten.mul.Scalar}
OVER = {aten.div.Tensor, aten.div.Scalar}
ADD = {aten.add.Tensor, aten.add_.Tensor}
SUBTRACT = {aten.sub.Tensor}
FILL = {aten.masked_fill.Scalar, aten.masked_fill.Tensor}
AND = {aten.logical_and.default, aten.bitwise_and.Tensor}
OR = {aten.logical_or.default, aten.bitwise_or.Tensor}
NOT = {aten.logical_not.default, aten.bitwise_not.default}
EQUAL = {aten.eq.Scalar, aten.eq.Tensor}
UNEQUAL = {aten.ne.Scalar, aten.ne.Tensor}
MAXIMUM = {aten.maximum.default, aten.max.other}
WHERE = {
    aten.where.self, aten.where.Scalar, aten.where.ScalarOther, aten.where.ScalarSelf,
}  # fmt: skip


def alpha(node: Node) -> Any:
    return node.kwargs.get("alpha", 1)
