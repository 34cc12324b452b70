"""Partitioners for language models."""

from __future__ import annotations

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


def _absent(backend: str) -> NoReturn:
    raise NotImplementedError(f"the {backend} backend is not here; there is XNNPACK")


def get_coreml_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("Core ML")


def get_ethosu_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("Ethos-U")


def get_openvino_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("OpenVINO")


def get_qnn_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("QNN")


def get_tosa_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("TOSA")


def get_vgf_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("VGF")


def get_vulkan_partitioner(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("Vulkan")
