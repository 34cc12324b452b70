"""What quantization a node of a graph is, in either dialect, and whether its numbers are valid."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.backends.xnnpack.utils.utils import get_param_tensor
from executorch.exir.torch_internals import find_schema

IS_IMPLICIT_Q_DQ_TAG = "IS_IMPLICIT_Q_DQ_TAG"

_LIBRARIES = ("quantized_decomposed", "torchao")
_RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int32: (0, 0)}


def tag_as_implicit_q_dq(node: Node) -> None:
    """Mark a conversion that belongs to the operator beside it."""
    node.meta[IS_IMPLICIT_Q_DQ_TAG] = True


def is_tagged_as_implicit_q_dq(node: Node) -> bool:
    return bool(node.meta.get(IS_IMPLICIT_Q_DQ_TAG, False))


def _name(node: Any) -> str:
    """`quantize_per_tensor.tensor`; empty for other libraries."""
    schema = find_schema(node.target) if isinstance(node, Node) else None
    if schema is None or schema.name.split("::")[0] not in _LIBRARIES:
        return ""
    return f"{schema.name.split('::')[1]}.{schema.overload_name or 'default'}"


def is_quant(node: Node) -> bool:
    return _name(node).startswith(("quantize_per_", "quantize_affine"))


def is_dequant(node: Node) -> bool:
    return _name(node).startswith(("dequantize_per_", "dequantize_affine"))


def is_qparam(node: Node) -> bool:
    """Whether it chooses a scale and a zero point from data."""
    return _name(node).startswith("choose_qparams")


def _converts(node: Node) -> bool:
    return is_quant(node) or is_dequant(node)


def is_affine_qdq(node: Node) -> bool:
    return "quantize_affine" in _name(node)


def is_per_token(node: Node) -> bool:
    return _converts(node) and ("per_token" in _name(node) or _blocks(node) == "rows")


def is_per_channel_group(node: Node) -> bool:
    return _converts(node) and ("per_channel_group" in _name(node) or _blocks(node) == "groups")


def is_per_channel(node: Node) -> bool:
    return _converts(node) and ("per_channel" in _name(node) or is_per_channel_group(node))


def is_per_tensor(node: Node) -> bool:
    return "per_tensor" in _name(node) and not is_per_channel(node)


def is_dynamic_qdq(node: Node) -> bool:
    """Whether scale and zero point are chosen from the data at run time."""
    if not _converts(node):
        return False
    scale = node.args[2 if is_affine_qdq(node) else 1]
    if not isinstance(scale, Node):
        return False
    return is_qparam(scale) or any(is_qparam(source) for source in scale.all_input_nodes)


def _blocks(node: Node) -> str:
    """What one scale of an affine conversion covers."""
    if not is_affine_qdq(node):
        return ""
    sizes, value = list(node.args[1]), node.args[0].meta["val"]  # type: ignore
    if any(size != 1 for size in sizes[:-1]):
        return "more"
    return "rows" if sizes[-1] == value.shape[-1] else "groups"


def validate_quant_scales(scales: float | torch.Tensor) -> None:
    """ValueError that names the first scale that is infinite, no number or subnormal."""
    found = scales if isinstance(scales, torch.Tensor) else torch.tensor([scales])
    least = torch.finfo(found.dtype).smallest_normal
    subnormal = (found >= 0) & (found.abs() < least)
    for bad in (~found.isfinite(), subnormal):
        if bad.any():
            at = tuple(int(i) for i in bad.nonzero()[0])
            raise ValueError(
                f"Scales must be finite and normal, however found scale value: {found[at]} "
                f"in scale tensor at index: {at}"
            )


def validate_quant_zeropoints(
    zp: float | int | torch.Tensor, dtype: torch.dtype, is_4bit: bool
) -> None:
    """ValueError that names the first zero point out of the type's range."""
    plain = {torch.qint8: torch.int8, torch.quint8: torch.uint8}.get(dtype, dtype)
    if plain not in _RANGES:
        raise ValueError(f"Unsupported dtype for quantization: {dtype}")
    least, largest = (0, 15) if is_4bit and plain is torch.int8 else _RANGES[plain]
    found = zp if isinstance(zp, torch.Tensor) else torch.tensor([zp])
    bad = (found < least) | (found > largest)
    if bad.any():
        at = tuple(int(i) for i in bad.nonzero()[0])
        raise ValueError(f"Found invalid zeropoint {found[at]} in zero point tensor at index: {at}")


def check_quantization(program: ExportedProgram) -> None:
    """ValueError for the first conversion of a program whose scales or zero points are invalid."""

    def constant(argument: Any) -> Any:
        return get_param_tensor(program, argument) if isinstance(argument, Node) else argument

    for node in program.graph.nodes:
        if not _converts(node) or is_affine_qdq(node) or is_dynamic_qdq(node):
            continue
        try:
            scale, zero_point = (constant(argument) for argument in node.args[1:3])
        except RuntimeError:  # computed from constants: folded later
            continue
        try:
            if scale is not None:
                validate_quant_scales(scale)
            dtype = next((a for a in node.args if isinstance(a, torch.dtype)), None)
            if zero_point is not None and dtype in _RANGES and not is_per_channel_group(node):
                validate_quant_zeropoints(zero_point, dtype, False)
        except ValueError as error:
            raise ValueError(
                f"Invalid quantization scale or zero point for {node}: {error}"
            ) from None
