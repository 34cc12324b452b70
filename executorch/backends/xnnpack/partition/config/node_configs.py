"""Operators that come with constants of their own, or with several results."""

from __future__ import annotations

import torch

from executorch.backends.xnnpack.partition.config.xnnpack_config import (
    ConfigPrecisionType,
    XNNPartitionerConfig,
)
from executorch.exir.torch_internals import OpOverload


class _FloatConfig(XNNPartitionerConfig):
    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        return [ConfigPrecisionType.FP32]


class BatchNormConfig(_FloatConfig):
    target_name = "_native_batch_norm_legit_no_training.default"


class MaxDimConfig(_FloatConfig):
    target_name = "max.dim"


class PreluConfig(_FloatConfig):
    target_name = "prelu.default"

    def get_original_aten(self) -> OpOverload | None:
        return torch.ops.aten.prelu.default
