"""Payloads from the dataclasses of `xnnpack_graph_schema`, and back.

header, 32 bytes      XNNHeader and two bytes of padding
flatbuffer            the XNNGraph, padded to 16 bytes
constants             what entries of constant_data without a key give offsets in
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from executorch.backends.xnnpack.serialization import _native
from executorch.backends.xnnpack.serialization.payload import KINDS
from executorch.backends.xnnpack.serialization.xnnpack_graph_schema import (
    NODES,
    QUANTIZATIONS,
    ConstantDataOffset,
    OutputMinMax,
    XNNDatatype,
    XNNGraph,
    XNNQuantizedTensorValue,
    XNNTensorValue,
    XNode,
    XValue,
)

_HEADER_BYTEORDER: Literal["little"] = "little"
CONSTANT_TENSOR_ALIGNMENT = 16
_DATATYPE = "xnn_datatype_"


@dataclass
class XNNHeader:
    """Offsets and sizes of a payload's parts, in bytes from its start. The magic stands where a
    flatbuffer would have its file identifier."""

    MAGIC_OFFSET: ClassVar[slice] = slice(4, 8)
    HEADER_SIZE_OFFSET: ClassVar[slice] = slice(8, 10)
    FLATBUFFER_OFFSET_OFFSET: ClassVar[slice] = slice(10, 14)
    FLATBUFFER_SIZE_OFFSET: ClassVar[slice] = slice(14, 18)
    CONSTANT_DATA_OFFSET_OFFSET: ClassVar[slice] = slice(18, 22)
    CONSTANT_DATA_SIZE_OFFSET: ClassVar[slice] = slice(22, 30)
    EXPECTED_MAGIC: ClassVar[bytes] = b"XH00"
    EXPECTED_LENGTH: ClassVar[int] = 30

    flatbuffer_offset: int
    flatbuffer_size: int
    constant_data_offset: int
    constant_data_size: int

    @staticmethod
    def from_bytes(data: bytes) -> XNNHeader:
        """The header that is these bytes; ValueError if they are none. Offsets are not checked."""
        length = XNNHeader.EXPECTED_LENGTH
        if len(data) > length:
            raise ValueError(
                f"Invalid XNNHeader: expected no more than {length} bytes, got {len(data)}"
            )
        magic, said = data[XNNHeader.MAGIC_OFFSET], _number(data, XNNHeader.HEADER_SIZE_OFFSET)
        if magic != XNNHeader.EXPECTED_MAGIC:
            raise ValueError(
                f"Invalid XNNHeader: invalid magic bytes {magic!r}, "
                f"expected {XNNHeader.EXPECTED_MAGIC!r}"
            )
        if said != len(data):
            raise ValueError(
                f"Invalid XNNHeader: Invalid parsed length: data given was {len(data)} bytes, "
                f"parsed length was {said} bytes"
            )
        places = (
            XNNHeader.FLATBUFFER_OFFSET_OFFSET,
            XNNHeader.FLATBUFFER_SIZE_OFFSET,
            XNNHeader.CONSTANT_DATA_OFFSET_OFFSET,
            XNNHeader.CONSTANT_DATA_SIZE_OFFSET,
        )
        return XNNHeader(*(_number(data, place) for place in places))

    def is_valid(self) -> bool:
        """Whether there is a flatbuffer, with the constants behind it."""
        end = self.flatbuffer_offset + self.flatbuffer_size
        return (
            self.flatbuffer_size > 0
            and self.constant_data_offset >= end
            and self.constant_data_size >= 0
        )

    def to_bytes(self) -> bytes:
        """The header's bytes; ValueError unless it is valid."""
        if not self.is_valid():
            raise ValueError(f"Invalid XNNHeader: {self} has no flatbuffer in front of constants")
        parts = (self.flatbuffer_offset, self.flatbuffer_size, self.constant_data_offset)
        return struct.pack(
            "<4x4sHIIIQ",
            self.EXPECTED_MAGIC,
            self.EXPECTED_LENGTH,
            *parts,
            self.constant_data_size,
        )


def _number(data: bytes, place: slice) -> int:
    return int.from_bytes(data[place], byteorder=_HEADER_BYTEORDER)


def serialize_xnnpack_binary(
    xnnpack_graph: XNNGraph, constant_data_bytes: bytes | bytearray
) -> bytes:
    """The payload of a graph, with the bytes that its constants give offsets in. TypeError: a field
    is of another type than its table has, such as a symbolic extent."""
    payload = _write(xnnpack_graph)
    header = _header_of(payload)
    header.constant_data_size = len(constant_data_bytes)
    return header.to_bytes() + payload[header.EXPECTED_LENGTH :] + constant_data_bytes


def convert_to_flatbuffer(xnnpack_graph: XNNGraph) -> bytes:
    """The graph alone."""
    payload = _write(xnnpack_graph)
    header = _header_of(payload)
    return payload[header.flatbuffer_offset :][: header.flatbuffer_size]


def deserialize_xnnpack_binary(payload: bytes) -> tuple[XNNGraph, bytes]:
    """The graph of a payload, and the bytes behind it. ValueError if there is none."""
    graph = json.loads(_native.read_payload(payload))
    header = _header_of(payload)
    constants = payload[header.constant_data_offset :][: header.constant_data_size]
    return (
        XNNGraph(
            version=graph.get("version", ""),
            xnodes=[_node_from(each) for each in graph.get("xnodes", [])],
            xvalues=[_value_from(each) for each in graph.get("xvalues", [])],
            num_externs=graph.get("num_externs", 0),
            input_ids=graph.get("input_ids", []),
            output_ids=graph.get("output_ids", []),
            constant_data=[
                ConstantDataOffset(
                    each.get("offset", 0), each.get("size", 0), each.get("named_key", "")
                )
                for each in graph.get("constant_data", [])
            ],
        ),
        constants,
    )


def _header_of(payload: bytes) -> XNNHeader:
    return XNNHeader.from_bytes(payload[: XNNHeader.EXPECTED_LENGTH])


# ---- dataclasses to the writer's lists ----


def _write(graph: XNNGraph) -> bytes:
    return _native.write_payload(
        [_value_to(each.xvalue_union) for each in graph.xvalues],
        [_node_to(each) for each in graph.xnodes],
        [(each.offset, each.size, each.named_key) for each in graph.constant_data],
        graph.num_externs,
        graph.input_ids,
        graph.output_ids,
        graph.version,
    )


def _value_to(value: XNNTensorValue | XNNQuantizedTensorValue) -> _native.Value:
    if isinstance(value, XNNTensorValue):
        tensor, quantization = value, None
    else:
        tensor, params = value.tensor_value, value.quant_params
        number = QUANTIZATIONS.index(type(params)) + 1
        quantization = (number, [_field_to(params, field.name) for field in fields(params)])
    return (
        tensor.id_out,
        int(tensor.datatype),
        tensor.dims,
        tensor.constant_buffer_idx,
        tensor.external_id,
        tensor.flags,
        quantization,
    )


def _field_to(params: Any, name: str) -> Any:
    value = getattr(params, name)
    if name == "scale_bf16" or value == []:
        return None
    if name in ("scale_buffer_idx", "num_scales"):
        return max(value, 0)
    if name == "scale":  # lists are written by their bits
        is_list = isinstance(value, list)
        return (
            [*struct.unpack(f"{len(value)}I", struct.pack(f"{len(value)}f", *value))]
            if (is_list)
            else float(value)
        )
    return value


def _node_to(node: XNode) -> _native.Node:
    union, limits = node.xnode_union, node.output_min_max
    kind = type(union).__name__.removeprefix("XNN")
    values = [getattr(union, field.name) for field in fields(union)]
    bounds = None
    if limits is not None:
        bounds = (float(limits.output_min), float(limits.output_max))
    return (KINDS[kind], values), node.debug_handle, bounds


# ---- what the reader gives to dataclasses; a field that is 0 is not there ----


def _table_from(table: type, found: dict[str, Any]) -> Any:
    empty = {"list[int]": [], "list[float]": [], "list[float] | None": None, "float": 0.0}
    return table(**{f.name: found.get(f.name, empty.get(str(f.type), 0)) for f in fields(table)})


def _node_from(found: dict[str, Any]) -> XNode:
    kind = found["xnode_union_type"].removeprefix("XNN")
    limits = found.get("output_min_max")
    return XNode(
        _table_from(NODES[kind], found.get("xnode_union", {})),
        found.get("debug_handle", 0),
        None
        if limits is None
        else OutputMinMax(limits.get("output_min", 0.0), limits.get("output_max", 0.0)),
    )


def _value_from(found: dict[str, Any]) -> XValue:
    union = found["xvalue_union"]
    tensor = _tensor_from(union.get("tensor_value", union))
    if "tensor_value" not in union:
        return XValue(tensor)
    named = {table.__name__: table for table in QUANTIZATIONS}
    params = _table_from(named[union["quant_params_type"]], union.get("quant_params", {}))
    return XValue(XNNQuantizedTensorValue(tensor, params))


def _tensor_from(found: dict[str, Any]) -> XNNTensorValue:
    value: XNNTensorValue = _table_from(XNNTensorValue, found)
    value.datatype = XNNDatatype[_DATATYPE + found.get("datatype", "invalid")]
    return value
