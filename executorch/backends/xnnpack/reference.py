"""What the nodes of a payload compute, by PyTorch, from the payload alone: upstream's too."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from executorch.backends.xnnpack.serialization import _native
from executorch.exir.backend.reference import (
    Function,
    Quantization,
    ReferenceGraph,
    ReferenceNode,
)

BACKEND_ID = "XnnpackBackend"

_NO_ID = 0xFFFFFFFF
_TRANSPOSED_WEIGHTS, _ALIGN_CORNERS = 1, 8
_TYPES = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "int32": torch.int32,
    "qint8": torch.int8,
    "quint8": torch.uint8,
    "qcint8": torch.int8,
    "qint32": torch.int32,
    "qcint32": torch.int32,
}
_INPUTS = ("input_id", "input1_id", "input2_id", "filter_id", "bias_id")
Node = dict[str, Any]


def read(processed: bytes, named_data: Mapping[str, bytes]) -> ReferenceGraph:
    """The operations of a payload. ValueError where `processed` is no payload."""
    payload = json.loads(_native.read_payload(processed))
    graph = ReferenceGraph()
    read_constant = _Constants(payload, processed, named_data)
    by_row: dict[int, int] = {}
    quantized_on_entry = set()
    for entry in payload.get("xvalues", ()):
        value = entry["xvalue_union"]
        quantized = value.get("quant_params", {})
        tensor = value.get("tensor_value", value)
        number, kind = tensor.get("id_out", 0), tensor["datatype"]
        if "num_nonbatch_dims" in quantized:
            by_row[number] = quantized["num_nonbatch_dims"]
        if tensor.get("dq_datatype", "invalid") != "invalid":
            quantized_on_entry.add(number)
        if tensor.get("constant_buffer_idx", 0):
            graph.constants[number] = read_constant(tensor, quantized)
        elif kind in ("fp32", "fp16", "bf16"):
            graph.types[number] = _TYPES[kind]
        elif kind in ("qint8", "quint8"):
            low = -128 if kind == "qint8" else 0
            scale, zero_point = quantized.get("scale", 0.0), quantized.get("zero_point", 0)
            graph.quantization[number] = Quantization(scale, zero_point, low, low + 255)
        if tensor.get("flags", 0) == 1:
            graph.inputs[tensor.get("external_id", 0)] = (number, tensor.get("dims", []))
    for index, entry in enumerate(payload.get("xnodes", ())):
        kind = entry["xnode_union_type"].removeprefix("XNN")
        node = _node(f"{kind} #{index}", kind, entry, by_row)
        if not quantized_on_entry.isdisjoint(node.inputs):
            node = ReferenceNode(node.name, "quantized on entry", node.inputs, node.outputs, None)
        graph.nodes.append(node)
    return graph


def _node(name: str, kind: str, entry: Node, by_row: Mapping[int, int]) -> ReferenceNode:
    fields = entry.get("xnode_union", {})
    # A field that is 0, such as the id of the first value, is not there.
    keys = [key for key in _native.NODE_FIELDS[kind] if key in _INPUTS]
    if kind.startswith("Concatenate"):
        keys = [f"input{i}_id" for i in range(1, int(kind[-1]) + 1)]
    inputs = [i for i in (fields.get(key, 0) for key in keys) if i != _NO_ID]
    outputs = [fields.get("output_id", 0)]
    if kind == "ArgMaxPooling2d":
        outputs = [fields.get("output_value_id", 0), fields.get("output_index_id", 0)]
    make = _FUNCTIONS.get(kind)
    limits = entry.get("output_min_max")
    return ReferenceNode(
        name,
        _SUMS.get(kind, kind),
        inputs,
        outputs,
        make(fields) if make is not None else None,
        (limits.get("output_min", 0.0), limits.get("output_max", 0.0)) if limits else None,
        # A transpose of what is kept as planes anyway is not run.
        moves=kind in ("StaticReshape", "Copy", "StaticTranspose"),
        by_row=by_row.get(outputs[0], 0) if kind == "Convert" else 0,
    )


# ---- constants ----


class _Constants:
    """Constants as floating-point tensors: quantized weights and biases are dequantized."""

    def __init__(self, payload: Node, processed: bytes, named: Mapping[str, bytes]) -> None:
        self._entries = payload.get("constant_data", [])
        self._legacy = payload.get("constant_buffer", [])
        self._base = _native.constants_offset(processed)
        self._processed = processed
        self._named = named

    def _bytes(self, index: int) -> bytes:
        if not self._entries:
            return bytes(self._legacy[index].get("storage", ()))
        entry = self._entries[index]
        if entry.get("named_key"):
            return bytes(self._named[entry["named_key"]])
        start = self._base + entry.get("offset", 0)
        return self._processed[start : start + entry.get("size", 0)]

    def __call__(self, tensor: Node, quantized: Node) -> Tensor:
        dims, kind = tensor.get("dims", []), tensor["datatype"]
        data = torch.frombuffer(
            bytearray(self._bytes(tensor["constant_buffer_idx"])) or bytearray(8), dtype=torch.uint8
        )
        if kind in ("qcint4", "qbint4"):
            nibbles = torch.stack([data & 15, data >> 4], -1).reshape(-1)
            columns = math.ceil(dims[-1] / 2) * 2
            rows = nibbles[: math.prod(dims[:-1]) * columns].reshape(*dims[:-1], columns)
            whole = rows[..., : dims[-1]].double() - 8
        else:
            dtype = _TYPES[kind]
            data = data[: math.prod(dims) * dtype.itemsize]
            whole = data.view(dtype).reshape(dims).double()
        return self._scaled(whole, quantized)

    def _scaled(self, whole: Tensor, quantized: Node) -> Tensor:
        if "group_size" in quantized:
            scales = self._scales(quantized, torch.bfloat16)
            size = quantized["group_size"]
            scales = scales.reshape(whole.shape[0], -1).repeat_interleave(size, 1)
            return whole * scales[:, : whole.shape[1]]
        if "num_scales" in quantized or isinstance(quantized.get("scale"), list):
            scales = self._scales(quantized, torch.float32)
            channel = quantized.get("channel_dim", 0)
            shape = [1] * whole.dim()
            shape[channel] = whole.shape[channel]
            if scales.numel() > whole.shape[channel]:  # of each matrix
                shape[0] = whole.shape[0]
            return whole * scales.reshape(shape)
        if "scale" in quantized:
            return (whole - quantized.get("zero_point", 0)) * quantized["scale"]
        return whole

    def _scales(self, quantized: Node, dtype: torch.dtype) -> Tensor:
        index = quantized.get("scale_buffer_idx", 0)
        if not index:
            return torch.tensor(quantized["scale"], dtype=dtype).double()
        data = torch.frombuffer(bytearray(self._bytes(index)), dtype=torch.uint8)
        return data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype).double()


# ---- operations ----


def _to_nchw(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2)


def _to_nhwc(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1)


def _both(fields: Node, what: str) -> tuple[int, int]:
    return fields.get(f"{what}_height", 0), fields.get(f"{what}_width", 0)


def _sides(fields: Node) -> tuple[int, int, int, int]:
    """Left, right, top, bottom."""
    left, right, top, bottom = (
        fields.get(f"padding_{side}", 0) for side in ("left", "right", "top", "bottom")
    )
    return left, right, top, bottom


def _linear(fields: Node) -> Function:
    def run(a: Sequence[Tensor]) -> list[Tensor]:
        weight = a[1].t() if fields.get("flags", 0) & _TRANSPOSED_WEIGHTS else a[1]
        return [F.linear(a[0], weight, *a[2:])]

    return run


def _batch_matmul(fields: Node) -> Function:
    transposed = fields.get("flags", 0) & _TRANSPOSED_WEIGHTS
    return lambda a: [a[0] @ (a[1].transpose(-1, -2) if transposed else a[1])]


def _convolution(fields: Node, depthwise: bool = False) -> Function:
    order = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
    stride, dilation = _both(fields, "subsampling"), _both(fields, "dilation")

    def run(a: Sequence[Tensor]) -> list[Tensor]:
        x = F.pad(_to_nchw(a[0]), _sides(fields))
        weight, groups = a[1].permute(order), fields.get("groups", 0)
        bias = a[2] if len(a) > 2 else None
        return [_to_nhwc(F.conv2d(x, weight, bias, stride, 0, dilation, groups))]

    return run


def _transposed_convolution(fields: Node) -> Function:
    stride, dilation = _both(fields, "subsampling"), _both(fields, "dilation")
    left, right, top, bottom = _sides(fields)

    def run(a: Sequence[Tensor]) -> list[Tensor]:
        groups = fields.get("groups", 0)
        weight = a[1].unflatten(0, (groups, -1)).permute(0, 4, 1, 2, 3).flatten(0, 1)
        bias = a[2] if len(a) > 2 else None
        y = F.conv_transpose2d(
            _to_nchw(a[0]), weight, bias, stride, 0, _both(fields, "adjustment"), groups, dilation
        )
        return [_to_nhwc(y[:, :, top : y.shape[2] - bottom, left : y.shape[3] - right])]

    return run


def _max_pooling(fields: Node) -> Function:
    size, stride = _both(fields, "pooling"), _both(fields, "stride")
    dilation = tuple(max(d, 1) for d in _both(fields, "dilation"))

    def run(a: Sequence[Tensor]) -> list[Tensor]:
        x = F.pad(_to_nchw(a[0]), _sides(fields), value=-math.inf)
        return [_to_nhwc(F.max_pool2d(x, size, stride, 0, dilation))]

    return run


def _arg_max_pooling(fields: Node) -> Function:
    """Indices number the places of a window row by row; of equal values, the first one counts."""
    height, width = _both(fields, "pooling")

    def run(a: Sequence[Tensor]) -> list[Tensor]:
        x = _to_nchw(a[0])
        values, places = F.max_pool2d(x, (height, width), return_indices=True)
        row, column = places // x.shape[3], places % x.shape[3]
        indices = row % height * width + column % width
        return [_to_nhwc(values), _to_nhwc(indices).to(values.dtype)]

    return run


def _average_pooling(fields: Node) -> Function:
    """The mean over the pixels of a window that are inside the image."""
    size, stride = _both(fields, "pooling"), _both(fields, "stride")

    def run(a: Sequence[Tensor]) -> list[Tensor]:
        x = _to_nchw(a[0])
        total, count = (
            F.avg_pool2d(F.pad(v, _sides(fields)), size, stride) for v in (x, torch.ones_like(x))
        )
        return [_to_nhwc(total / count)]

    return run


def _resize(fields: Node) -> Function:
    size = _both(fields, "new")
    corners = bool(fields.get("flags", 0) & _ALIGN_CORNERS)
    return lambda a: [
        _to_nhwc(F.interpolate(_to_nchw(a[0]), size, mode="bilinear", align_corners=corners))
    ]


def _slice(fields: Node) -> Function:
    ends = list(zip(fields.get("offsets", []), fields.get("sizes", []), strict=True))

    def run(a: Sequence[Tensor]) -> list[Tensor]:
        y = a[0]
        for dim, (offset, size) in enumerate(ends):
            y = y.narrow(dim, offset, size or y.shape[dim] - offset)
        return [y]

    return run


def _pad(fields: Node) -> Function:
    pairs = list(zip(fields.get("pre_paddings", []), fields.get("post_paddings", []), strict=True))
    amounts = [n for pair in reversed(pairs) for n in pair]
    return lambda a: [F.pad(a[0], amounts, value=fields.get("padding_value", 0.0))]


def _concatenate(fields: Node) -> Function:
    axis = fields.get("axis", 0)
    axis = axis - 2**32 if axis >= 2**31 else axis
    return lambda a: [torch.cat(list(a), axis)]


def _reshape(fields: Node) -> Function:
    return lambda a: [a[0].reshape([n or -1 for n in fields.get("new_shape", [])])]


def _each(function: Callable[..., Tensor]) -> Callable[[Node], Function]:
    return lambda fields: lambda a: [function(*a)]


_FUNCTIONS: dict[str, Callable[[Node], Function]] = {
    "FullyConnected": _linear,
    "BatchMatrixMultiply": _batch_matmul,
    "Conv2d": _convolution,
    "DepthwiseConv2d": lambda fields: _convolution(fields, depthwise=True),
    "ConvTranspose2d": _transposed_convolution,
    "MaxPooling2d": _max_pooling,
    "ArgMaxPooling2d": _arg_max_pooling,
    "AvgPooling2d": _average_pooling,
    "GlobalAvgPooling2d": _each(lambda x: x.mean((1, 2), keepdim=True)),
    "StaticResizeBilinear2D": _resize,
    "StaticSlice": _slice,
    "StaticConstantPad": _pad,
    "StaticTranspose": lambda fields: lambda a: [a[0].permute(fields.get("perm", []))],
    "StaticReshape": _reshape,
    **{f"Concatenate{n}": _concatenate for n in (2, 3, 4, 5)},
    "LeakyReLU": lambda f: lambda a: [F.leaky_relu(a[0], f.get("negative_slope", 0.0))],
    "ELU": lambda f: lambda a: [F.elu(a[0], f.get("alpha", 0.0))],
    "Softmax": _each(lambda x: torch.softmax(x, -1)),
    "Add": _each(torch.add),
    "Subtract": _each(torch.sub),
    "Multiply": _each(torch.mul),
    "Div": _each(torch.div),
    "Minimum": _each(torch.minimum),
    "Maximum": _each(torch.maximum),
    "PReLU": _each(lambda x, slope: torch.where(x < 0, x * slope, x)),
    "Sigmoid": _each(torch.sigmoid),
    "Tanh": _each(torch.tanh),
    "Gelu": _each(F.gelu),
    "Hardswish": _each(F.hardswish),
    "Clamp": _each(lambda x: x),
    "Convert": _each(lambda x: x),
    "Copy": _each(lambda x: x),
    "Floor": _each(torch.floor),
    "Ceiling": _each(torch.ceil),
    "SquareRoot": _each(torch.sqrt),
    "ReciprocalSquareRoot": _each(torch.rsqrt),
    "Negate": _each(torch.neg),
    "Square": _each(torch.square),
    "Abs": _each(torch.abs),
    "Log": _each(torch.log),
    "Exp": _each(torch.exp),
    "Sin": _each(torch.sin),
    "Cos": _each(torch.cos),
}
# Sums of products, whose rounding grows with their length, and positions, with the extents.
_SUMS = {
    "FullyConnected": "aten::linear",
    "BatchMatrixMultiply": "aten::bmm",
    "Conv2d": "aten::convolution",
    "DepthwiseConv2d": "aten::convolution",
    "ConvTranspose2d": "aten::convolution",
    "GlobalAvgPooling2d": "aten::mean",
    "AvgPooling2d": "aten::avg_pool2d",
    "StaticResizeBilinear2D": "aten::upsample_bilinear2d",
}
