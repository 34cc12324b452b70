"""Operators with weights."""

from __future__ import annotations

import torch

from executorch.backends.xnnpack.partition.config.xnnpack_config import XNNPartitionerConfig
from executorch.exir.torch_internals import OpOverload


class GEMMConfig(XNNPartitionerConfig):
    """In floating point, and with integer weights for activations of both kinds."""


class LinearConfig(GEMMConfig):
    target_name = "linear.default"

    def get_original_aten(self) -> OpOverload | None:
        return torch.ops.aten.linear.default


class AddmmConfig(GEMMConfig):
    target_name = "addmm.default"


class MMConfig(AddmmConfig):
    target_name = "mm.default"


class ConvolutionConfig(GEMMConfig):
    target_name = "convolution.default"
