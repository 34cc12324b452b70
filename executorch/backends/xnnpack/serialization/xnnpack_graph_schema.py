"""The tables of schema.fbs as dataclasses, for scripts that look at payloads or make their own.

Fields stand in the order of their ids. This project's exporter makes none of them
(`serialization/payload.py`); `xnnpack_graph_serialize` turns them into bytes and back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import reduce
from operator import or_
from typing import Any

from executorch.backends.xnnpack.serialization import _native

# ---- nodes: the forms that several kinds have ----


@dataclass
class XNNNode1x1:
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNNode2x1:
    input1_id: int
    input2_id: int
    output_id: int
    flags: int


@dataclass
class XNNCat:
    axis: int
    input1_id: int
    input2_id: int
    input3_id: int
    input4_id: int
    output_id: int
    flags: int
    input5_id: int


@dataclass
class XNNNodeConv:
    padding_top: int
    padding_right: int
    padding_bottom: int
    padding_left: int
    kernel_height: int
    kernel_width: int
    subsampling_height: int
    subsampling_width: int
    dilation_height: int
    dilation_width: int
    group_input_channels: int
    group_output_channels: int
    groups: int
    adjustment_height: int
    adjustment_width: int
    input1_id: int
    filter_id: int
    bias_id: int
    output_id: int
    flags: int


@dataclass
class XNNPooling2D:
    padding_top: int
    padding_right: int
    padding_bottom: int
    padding_left: int
    pooling_height: int
    pooling_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    input_id: int
    output_id: int
    flags: int


# ---- nodes of a form of their own ----


@dataclass
class XNNFullyConnected:
    input1_id: int
    filter_id: int
    bias_id: int
    output_id: int
    flags: int


@dataclass
class XNNStaticTranspose:
    num_dims: int
    perm: list[int]
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNStaticResizeBilinear2D:
    new_height: int
    new_width: int
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNStaticConstantPad:
    pre_paddings: list[int]
    post_paddings: list[int]
    padding_value: float
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNStaticReshape:
    num_dims: int
    new_shape: list[int]
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNArgMaxPooling2d:
    padding_top: int
    padding_right: int
    padding_bottom: int
    padding_left: int
    pooling_height: int
    pooling_width: int
    input_id: int
    output_value_id: int
    output_index_id: int
    flags: int


@dataclass
class XNNLeakyReLU:
    negative_slope: float
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNELU:
    alpha: float
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNStaticSlice:
    num_dims: int
    offsets: list[int]
    sizes: list[int]
    input_id: int
    output_id: int
    flags: int


@dataclass
class XNNScaledDotProductAttention:
    query_id: int
    key_id: int
    value_id: int
    scale_id: int
    mask_id: int
    output_id: int
    flags: int


_FORMS = {
    tuple(field.name for field in fields(form)): form
    for form in (XNNNode1x1, XNNNode2x1, XNNCat, XNNNodeConv, XNNPooling2D)
}
# A class for each kind, XNNAdd and so on.
NODES: dict[str, type] = {}
for _kind, _fields in _native.NODE_FIELDS.items():
    _name = f"XNN{_kind}"
    if _name not in globals():
        globals()[_name] = dataclass(type(_name, (_FORMS[_fields],), {"__module__": __name__}))
    NODES[_kind] = globals()[_name]
XNodeUnion: Any = reduce(or_, NODES.values())


@dataclass
class OutputMinMax:
    """Bounds of a node's result; infinities are floats or their names."""

    output_min: float | str
    output_max: float | str


@dataclass
class XNode:
    xnode_union: Any  # one of XNodeUnion
    debug_handle: int
    output_min_max: OutputMinMax | None = None


# ---- values ----


class XNNDatatype(IntEnum):
    xnn_datatype_invalid = 0
    xnn_datatype_fp32 = 1
    xnn_datatype_fp16 = 2
    xnn_datatype_qint8 = 3
    xnn_datatype_quint8 = 4
    xnn_datatype_qint32 = 5
    xnn_datatype_qcint8 = 6
    xnn_datatype_qcint32 = 7
    xnn_datatype_qcint4 = 8
    xnn_datatype_qdint8 = 9
    xnn_datatype_qbint4 = 10
    xnn_datatype_qpint8 = 11
    xnn_datatype_int32 = 12
    xnn_datatype_pfp32 = 13
    xnn_datatype_bf16 = 14


@dataclass
class PerChannelQuant:
    """Scales here, or an entry of the graph's constants; -1 is none."""

    scale: list[float]
    channel_dim: int
    scale_buffer_idx: int = -1
    num_scales: int = -1


@dataclass
class PerTensorQuant:
    scale: float
    zero_point: int


@dataclass
class PerTokenDynamicQuant:
    num_nonbatch_dims: int


@dataclass
class PerChannelGroupQuant:
    """As PerChannelQuant, for each `group_size` weights of a channel; `scale_bf16` is of older
    files, and not written."""

    scale: list[float]
    channel_dim: int
    group_size: int = 1
    scale_bf16: list[float] | None = None
    scale_buffer_idx: int = -1
    num_scales: int = -1


# In the order of their numbers in the union, from 1.
QUANTIZATIONS = (PerChannelQuant, PerTensorQuant, PerTokenDynamicQuant, PerChannelGroupQuant)
XNNQuantParams = PerChannelQuant | PerTensorQuant | PerTokenDynamicQuant | PerChannelGroupQuant


@dataclass
class XNNTensorValue:
    datatype: XNNDatatype
    num_dims: int
    dims: list[int]
    constant_buffer_idx: int
    external_id: int
    flags: int
    id_out: int


@dataclass
class XNNQuantizedTensorValue:
    tensor_value: XNNTensorValue
    quant_params: Any  # one of XNNQuantParams


XValueUnion = XNNTensorValue | XNNQuantizedTensorValue


@dataclass
class XValue:
    xvalue_union: XValueUnion


# ---- the graph ----


@dataclass
class Buffer:
    storage: bytes


@dataclass
class ConstantDataOffset:
    """Bytes of the program's named data, or of the region behind the flatbuffer."""

    offset: int
    size: int
    named_key: str = ""


@dataclass
class XNNGraph:
    version: str
    xnodes: list[XNode]
    xvalues: list[XValue]
    num_externs: int
    input_ids: list[int]
    output_ids: list[int]
    constant_data: list[ConstantDataOffset]  # the first stands for none
