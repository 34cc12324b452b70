"""Quantizers of exported graphs (pt2e) for language models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)


@dataclass
class EmbeddingQuantOptions:
    is_per_channel: bool = True
    group_size: int = -1


@dataclass
class DynamicQuantLinearOptions:
    is_per_channel: bool = True
    is_qc4: bool = False


@dataclass
class PT2EQuantOptions:
    quantize_embedding: EmbeddingQuantOptions | None = None
    quantize_linear: DynamicQuantLinearOptions | None = None


def get_pt2e_quantization_params(
    pt2e_quantize: str | None = None, quantization_mode: str | None = None
) -> PT2EQuantOptions | None:
    if pt2e_quantize is None:
        return None
    if quantization_mode is not None:
        raise ValueError("pt2e_quantize or a quantization mode of weights, not both")
    if pt2e_quantize not in ("xnnpack_dynamic", "xnnpack_dynamic_qc4"):
        _absent(pt2e_quantize)
    linear = DynamicQuantLinearOptions(is_qc4=pt2e_quantize.endswith("qc4"))
    return PT2EQuantOptions(quantize_linear=linear)


def get_pt2e_quantizers(
    quant_params: PT2EQuantOptions | None, so_library: str | None = None
) -> list[XNNPACKQuantizer]:
    if quant_params is None or quant_params.quantize_linear is None:
        return []
    linear = quant_params.quantize_linear
    bounds = {"weight_qmin": -8, "weight_qmax": 7} if linear.is_qc4 else {}
    config = get_symmetric_quantization_config(
        is_per_channel=linear.is_per_channel, is_dynamic=True, **bounds
    )
    return [XNNPACKQuantizer().set_global(config)]


def _absent(name: str) -> NoReturn:
    raise NotImplementedError(f"{name}: this quantizer is not here; there is XNNPACK's")


def get_coreml_quantizer(pt2e_quantize: str) -> NoReturn:
    _absent(pt2e_quantize)


def get_ethosu_quantizer(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("Ethos-U")


def get_ov_quantizer(pt2e_quantize: str, group_size: int = 128) -> NoReturn:
    _absent(pt2e_quantize)


def get_qnn_quantizer(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("QNN")


def get_tosa_quantizer(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("TOSA")


def get_vgf_quantizer(*args: Any, **kwargs: Any) -> NoReturn:
    _absent("VGF")


def get_vulkan_quantizer(pt2e_quantize: str) -> NoReturn:
    _absent(pt2e_quantize)
