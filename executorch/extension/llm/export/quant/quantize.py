"""From floats to integers: one weight, a stream of them, a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from executorch.exir import torch_internals
from executorch.extension.llm.export.exportable_weight import ExportableWeight
from executorch.extension.llm.export.int4 import packed_in_bytes
from executorch.extension.llm.export.quant.convert import (
    Convert,
    maybe_cast,
    to_default,
    to_exportable,
)
from executorch.extension.llm.export.quant.recipe import QuantConfig, QuantRecipe

_METHODS = ("min_max", "hqq")


def quantize_weight(weight: Tensor, config: QuantConfig) -> Tensor:
    """A torchao `Int4Tensor` for 4 bits, an `IntxUnpackedToInt8Tensor` for 5, 6 and 8, with scales
    of bfloat16. ValueError for other settings, and for groups that do not divide the rows."""
    if config.bits not in (4, 5, 6, 8):
        raise ValueError(f"Unsupported bits={config.bits}; 4, 5, 6 and 8 are known")
    if config.method not in _METHODS:
        raise ValueError(f"Unknown quantization method: {config.method!r}; known are {_METHODS}")
    if config.method == "hqq" and not config.symmetric:
        raise ValueError("hqq is symmetric here; method 'min_max' has zero points")
    if config.group_size < 1 or weight.shape[-1] % config.group_size:
        raise ValueError(f"groups of {config.group_size} do not divide {list(weight.shape)}")
    by_range = config.method == "min_max"
    q, scale, zero = (_by_range if by_range else _by_hqq)(weight, config)
    return (
        _as_int4(q, scale, zero, config) if config.bits == 4 else _as_intx(q, scale, zero, config)
    )


def _limits(config: QuantConfig) -> tuple[int, int]:
    """Numbers of 4 bits with a zero point begin at 0, as Int4Tensor has them."""
    if config.bits == 4 and not config.symmetric:
        return 0, 15
    return -(1 << (config.bits - 1)), (1 << (config.bits - 1)) - 1


def _by_range(weight: Tensor, config: QuantConfig) -> tuple[Tensor, Tensor, Tensor]:
    from torchao.quantization.quant_primitives import (
        MappingType,
        choose_qparams_affine,
        quantize_affine,
    )

    least, most = _limits(config)
    block = (*(1 for _ in weight.shape[:-1]), config.group_size)
    mapping = MappingType.SYMMETRIC if config.symmetric else MappingType.ASYMMETRIC
    limits: dict[str, Any] = {"quant_min": least, "quant_max": most}
    scale, zero = choose_qparams_affine(
        weight.float(),
        mapping,
        block,
        target_dtype=torch.int8,
        scale_dtype=torch.bfloat16,
        zero_point_dtype=torch.bfloat16 if config.bits == 4 else torch.int8,
        **limits,
    )
    q = quantize_affine(weight.float(), block, scale, zero, output_dtype=torch.int8, **limits)
    groups = (*weight.shape[:-1], -1)
    return q, scale.reshape(groups), zero.reshape(groups)


def _by_hqq(weight: Tensor, config: QuantConfig) -> tuple[Tensor, Tensor, Tensor]:
    rows = weight.float().reshape(-1, weight.shape[-1])
    choose = torch_internals.choose_qparams_and_quantize_scale_only_hqq
    q, scale = choose(rows, [1, config.group_size], *_limits(config))
    scale = scale.to(torch.bfloat16).reshape(*weight.shape[:-1], -1)
    zero_dtype = torch.bfloat16 if config.bits == 4 else torch.int8
    return q.to(torch.int8).reshape(weight.shape), scale, torch.zeros_like(scale, dtype=zero_dtype)


def _as_int4(q: Tensor, scale: Tensor, zero: Tensor, config: QuantConfig) -> Tensor:
    from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor

    if config.symmetric:
        q, zero = q + 8, torch.full_like(scale, 8)
    return Int4Tensor(  # type: ignore[no-any-return]
        qdata=packed_in_bytes(q.to(torch.uint8)),
        scale=scale.t().contiguous(),
        zero_point=zero.t().contiguous(),
        block_size=[1, config.group_size],
        shape=q.shape,
    )


def _as_intx(q: Tensor, scale: Tensor, zero: Tensor, config: QuantConfig) -> Tensor:
    from torchao.quantization import IntxUnpackedToInt8Tensor

    return IntxUnpackedToInt8Tensor(  # type: ignore[no-any-return]
        qdata=q,
        scale=scale,
        zero_point=zero,
        target_dtype={5: torch.int5, 6: torch.int6}.get(config.bits, torch.int8),
        block_size=(1, config.group_size),
        dtype=torch.bfloat16,
        activation_quantization=None,
    )


def dequantize_weight(weight: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The floats that a quantized weight stands for. TypeError for what is none."""
    from torchao.quantization import IntxUnpackedToInt8Tensor

    weight = to_exportable("", weight)
    if isinstance(weight, ExportableWeight):
        return weight.dequantize(dtype)
    if isinstance(weight, IntxUnpackedToInt8Tensor):
        return weight.to(dtype).dequantize()  # type: ignore[no-any-return]
    raise TypeError(f"Cannot dequantize {type(weight).__name__}")


def quantize_stream(
    pairs: Iterable[tuple[str, Tensor]], recipe: QuantRecipe, dtype: torch.dtype = torch.bfloat16
) -> Iterator[tuple[str, Tensor]]:
    """Names and weights, quantized as the recipe says, or in `dtype`: in torchao's own
    representations, which its checkpoints know. One weight is in memory at a time."""
    for fqn, tensor in pairs:
        config = recipe.get_config(fqn)
        yield fqn, maybe_cast(tensor if config is None else quantize_weight(tensor, config), dtype)


def quantize_model(
    model: torch.nn.Module,
    recipe: QuantRecipe,
    *,
    convert: Convert = to_default,
    dtype: torch.dtype = torch.bfloat16,
    verbose: bool = False,
) -> dict[str, Tensor]:
    """A state dict of the model's parameters, quantized as the recipe says and then converted, and
    of its buffers that state dicts have, as they are."""
    parameters = {fqn: parameter.data for fqn, parameter in model.named_parameters()}
    state: dict[str, Tensor] = {}
    for i, (fqn, weight) in enumerate(quantize_stream(parameters.items(), recipe, dtype)):
        state[fqn] = maybe_cast(convert(fqn, weight), dtype)
        if verbose:
            print(f"  Quantized {i + 1}/{len(parameters)}: {fqn}")
    kept = model.state_dict().keys()
    buffers = {fqn: buffer.data for fqn, buffer in model.named_buffers()}
    return state | {fqn: b for fqn, b in buffers.items() if fqn in kept and fqn not in state}
