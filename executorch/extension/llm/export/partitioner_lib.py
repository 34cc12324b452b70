"""Partitioners for language models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner


def get_xnnpack_partitioner(
    dynamic_quant_only_partitioner: bool = True, enable_bf16: bool = False
) -> XnnpackPartitioner:
    """Products whose inputs are quantized when they run, each a delegate; or all XNNPACK has."""
    if dynamic_quant_only_partitioner:
        return XnnpackPartitioner(
            config_precisions=ConfigPrecisionType.DYNAMIC_QUANT,
            per_op_mode=True,
            enable_bf16=enable_bf16,
        )
    return XnnpackPartitioner(enable_bf16=enable_bf16)


def _absent(backend: str) -> Callable[..., NoReturn]:
    def get_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"the {backend} backend is not here; there is XNNPACK")

    return get_partitioner


get_coreml_partitioner = _absent("Core ML")
get_ethosu_partitioner = _absent("Ethos-U")
get_openvino_partitioner = _absent("OpenVINO")
get_qnn_partitioner = _absent("QNN")
get_tosa_partitioner = _absent("TOSA")
get_vgf_partitioner = _absent("VGF")
get_vulkan_partitioner = _absent("Vulkan")
