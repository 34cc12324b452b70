"""Operators without weights, made from the rows that name a class."""

from __future__ import annotations

import torch

from executorch.backends.xnnpack.partition.config.xnnpack_config import (
    ConfigPrecisionType,
    XNNPartitionerConfig,
)
from executorch.backends.xnnpack.rules import RULES
from executorch.exir.torch_internals import OpOverload


class GenericNodePartitionerConfig(XNNPartitionerConfig):
    """An operator that is one node of the payload."""

    precisions: list[ConfigPrecisionType]

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        return list(self.precisions)

    def get_original_aten(self) -> OpOverload | None:
        whole = (r for r in RULES.values() if r.whole and r.name == self.target_name)
        return next((rule.target._op for rule in whole), None)


def _class(name: str, target: str, precisions: list[ConfigPrecisionType]) -> None:
    fields = {"target_name": target, "precisions": precisions, "__module__": __name__}
    globals()[name] = type(name, (GenericNodePartitionerConfig,), fields)


_FLOAT, _STATIC = [ConfigPrecisionType.FP32], [ConfigPrecisionType.STATIC_QUANT]
for _rule in RULES.values():
    if _rule.config:
        _class(_rule.config, _rule.name, _FLOAT if not _rule.integers else _FLOAT + _STATIC)
# These classes of upstream's are for other precisions than the rule of the operator, or for an
# operator without a rule.
_class("AvgPoolingConfig", "avg_pool2d.default", _FLOAT)
_class("DeQuantizedPerTensorConfig", "dequantize_per_tensor.default", _STATIC)
_class("QuantizedPerTensorConfig", "quantize_per_tensor.default", _STATIC)
_class("ToDimOrderCopyConfig", "_to_dim_order_copy.default", _FLOAT + _STATIC)


class EluConfig(GenericNodePartitionerConfig):
    """The ATen operator is kept from decomposition only if this class is among a partitioner's
    configs."""

    target_name = "elu.default"
    precisions = _FLOAT + _STATIC

    def get_original_aten(self) -> OpOverload | None:
        return torch.ops.aten.elu.default
