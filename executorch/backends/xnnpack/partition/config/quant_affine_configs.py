"""torchao's quantization of activations and weights, which is lowered with the layer it is for."""

from __future__ import annotations

import torch

from executorch.backends.xnnpack.partition.config.xnnpack_config import (
    ConfigPrecisionType,
    XNNPartitionerConfig,
)
from executorch.exir.torch_internals import OpOverload


class QDQAffineConfigs(XNNPartitionerConfig):
    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        return [ConfigPrecisionType.DYNAMIC_QUANT]

    def get_original_aten(self) -> OpOverload | None:
        """The operator; None if torchao, which registers it, is not imported."""
        packet = getattr(torch.ops.torchao, str(self.target_name).split(".")[0], None)
        return None if packet is None else packet.default


class QuantizeAffineConfig(QDQAffineConfigs):
    target_name = "quantize_affine.default"


class DeQuantizeAffineConfig(QDQAffineConfigs):
    target_name = "dequantize_affine.default"


class ChooseQParamsAffineConfig(QDQAffineConfigs):
    target_name = "choose_qparams_affine.default"
