"""Payloads as dataclasses: what is read is written again, and hand-made graphs compute."""

from __future__ import annotations

import json

import pytest
import torch
from torch.export import export

from executorch.backends.xnnpack import reference
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.serialization import _native
from executorch.backends.xnnpack.serialization import xnnpack_graph_schema as schema
from executorch.backends.xnnpack.serialization.payload import KINDS
from executorch.backends.xnnpack.serialization.xnnpack_graph_serialize import (
    XNNHeader,
    convert_to_flatbuffer,
    deserialize_xnnpack_binary,
    serialize_xnnpack_binary,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.error import ExportError
from executorch.exir.lowered_backend_module import get_lowered_backend_modules
from tests.interop.xnnpack_cases import CASES, quantized_pt2e, quantized_torchao

NO_ID = 0xFFFFFFFF


@pytest.mark.parametrize(
    "name", ["moved", "pools", "convolutions", "unary", "mlp_int8", "linear_int4_group"]
)
def test_a_payload_that_is_read_is_written_again(name: str) -> None:
    case = CASES[name]()
    module = case.module.eval()
    if "int8" in name:
        module = quantized_pt2e(case)
    elif "int4" in name:
        module = quantized_torchao(case)
    with torch.no_grad():
        program = export(module, case.inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    for lowered in get_lowered_backend_modules(edge.exported_program().graph_module):
        payload = lowered.processed_bytes
        graph, constants = deserialize_xnnpack_binary(payload)
        assert all(type(n.xnode_union) in schema.NODES.values() for n in graph.xnodes)
        again = serialize_xnnpack_binary(graph, constants)
        assert json.loads(_native.read_payload(again)) == json.loads(_native.read_payload(payload))
        assert deserialize_xnnpack_binary(again) == (graph, constants)


def plain(number: int, dims: list[int], slot: int = NO_ID, flags: int = 0, constant: int = 0):
    return schema.XValue(
        schema.XNNTensorValue(
            schema.XNNDatatype.xnn_datatype_fp32,
            len(dims),
            dims,
            constant,
            slot,
            flags,
            number,
        )
    )


def product(weights: torch.Tensor) -> tuple[schema.XNNGraph, bytes]:
    """y = clamp(x w^T, 0, 0.5) of int8 weights, each row with a scale of its own in the graph."""
    n, k = weights.shape
    scales = weights.abs().amax(1) / 127
    integers = torch.round(weights / scales[:, None]).to(torch.int8)
    w = schema.XNNTensorValue(
        schema.XNNDatatype.xnn_datatype_qcint8, 2, [n, k], 1, NO_ID, 0, id_out=2
    )
    quantized = schema.XNNQuantizedTensorValue(w, schema.PerChannelQuant(scales.tolist(), 0))
    layer = schema.XNNFullyConnected(0, 2, NO_ID, 1, flags=0)
    graph = schema.XNNGraph(
        version="0",
        xnodes=[schema.XNode(layer, 7, schema.OutputMinMax(0.0, "0.5"))],
        xvalues=[plain(0, [2, k], 0, 1), plain(1, [2, n], 1, 2), schema.XValue(quantized)],
        num_externs=2,
        input_ids=[0],
        output_ids=[1],
        constant_data=[
            schema.ConstantDataOffset(0, 0),
            schema.ConstantDataOffset(16, n * k),
        ],
    )
    return graph, bytes(16) + integers.numpy().tobytes()


def test_a_graph_made_by_hand_computes_with_the_constants_behind_it() -> None:
    torch.manual_seed(0)
    weights, x = torch.randn(3, 5), torch.randn(2, 5)
    graph, constants = product(weights)
    payload = serialize_xnnpack_binary(graph, constants)
    header = XNNHeader.from_bytes(payload[: XNNHeader.EXPECTED_LENGTH])
    assert header.constant_data_size == len(constants) and header.constant_data_offset % 16 == 0
    assert payload[header.constant_data_offset :] == constants
    assert payload[header.flatbuffer_offset :][XNNHeader.MAGIC_OFFSET] == b"XN01"
    flatbuffer = convert_to_flatbuffer(graph)
    assert payload[header.flatbuffer_offset :].startswith(flatbuffer)
    read = reference.read(payload, {})
    (node,) = read.nodes
    (got,) = node.function([x.double(), read.constants[2]])
    assert node.bounds == (0.0, 0.5)
    # Half a step of each weight.
    bound = (x.abs().sum(1).max() * weights.abs().max() / 254).item()
    torch.testing.assert_close(got, x.double() @ weights.double().T, rtol=0, atol=bound)


def test_there_is_a_class_for_each_kind_of_node() -> None:
    assert list(schema.NODES) == list(KINDS)
    assert schema.XNNAdd(1, 2, 3, 0) != schema.XNNSubtract(1, 2, 3, 0)
    assert issubclass(schema.XNNDepthwiseConv2d, schema.XNNNodeConv)
    assert schema.XNNCos.__module__ == schema.__name__


def test_wrong_headers_and_types_are_refused() -> None:
    good = XNNHeader(32, 64, 96, 2**40).to_bytes()
    assert XNNHeader.from_bytes(good) == XNNHeader(32, 64, 96, 2**40)
    for bad, said in (
        (good[:4] + b"XH01" + good[8:], "invalid magic bytes b'XH01', expected b'XH00'"),
        (good[:8] + b"\x1d" + good[9:], "data given was 30 bytes, parsed length was 29 bytes"),
        (good + b"\0", "expected no more than 30 bytes, got 31"),
    ):
        with pytest.raises(ValueError, match=said):
            XNNHeader.from_bytes(bad)
    for header in (XNNHeader(32, 0, 96, 0), XNNHeader(32, 64, 95, 0)):
        with pytest.raises(ValueError, match="has no flatbuffer in front of constants"):
            header.to_bytes()
    graph, _ = product(torch.ones(1, 1))
    graph.xvalues[0].xvalue_union.dims = ["rows", 1]
    with pytest.raises(TypeError, match="write_payload"):
        serialize_xnnpack_binary(graph, b"")
    with pytest.raises(ValueError, match="not an XNNPACK payload"):
        deserialize_xnnpack_binary(b"XN01")


def test_sizes_that_the_runtime_has_not_are_named() -> None:
    dynamic = {"input": {0: torch.export.Dim("n", max=2**40)}}
    program = export(torch.nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=dynamic)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    with pytest.raises(ExportError, match=r"sizes \[1099511627776, 3\]: an extent must be from 0"):
        edge.to_executorch()
