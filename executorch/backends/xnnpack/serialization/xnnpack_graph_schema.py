"""The tables of schema.fbs as dataclasses, for scripts that look at payloads or make their own.

Fields stand in the order of their ids. This project's exporter makes none of them
(`serialization/payload.py`); `xnnpack_graph_serialize` turns them into bytes and back.
"""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from enum import IntEnum
from functools import reduce
from operator import or_
from typing import Any

from executorch.backends.xnnpack.serialization import _native

# ---- nodes: a class for each kind, XNNAdd and so on; those of one form derive from it ----

_FORMS = {
    "XNNNode1x1": "Abs",
    "XNNNode2x1": "Add",
    "XNNCat": "Concatenate2",
    "XNNNodeConv": "Conv2d",
    "XNNPooling2D": "MaxPooling2d",
}


def _class(name: str, fields: dict[str, str], *bases: type) -> type:
    namespace = {"__module__": __name__}
    made = make_dataclass(name, fields.items(), bases=bases, namespace=namespace)
    globals()[name] = made
    return made


_MADE = {
    tuple(_native.NODE_FIELDS[kind]): _class(name, _native.NODE_FIELDS[kind])
    for name, kind in _FORMS.items()
}
NODES: dict[str, type] = {}
for _kind, _fields in _native.NODE_FIELDS.items():
    _form = _MADE.get(tuple(_fields))
    NODES[_kind] = _class(f"XNN{_kind}", *((_fields,) if _form is None else ({}, _form)))
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
