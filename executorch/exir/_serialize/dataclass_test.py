import copy
import json
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import export

from executorch.exir import schema, to_edge
from executorch.exir._serialize._dataclass import _DataclassEncoder, _json_to_dataclass
from executorch.exir._serialize._flatbuffer_program import _flatbuffer_to_program
from executorch.exir._serialize._program import (
    _json_to_program,
    _program_to_json,
    deserialize_pte_binary,
)
from executorch.exir._serialize.padding import aligned_size, pad_to, padding_required


class _Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x):
        return torch.clamp(self.linear(x), min=0.5)


def test_program_survives_json():
    manager = to_edge(export(_Layer(), (torch.randn(4, 3),))).to_executorch()
    for program in (
        manager.executorch_program,
        deserialize_pte_binary(manager.buffer).program,
        _flatbuffer_to_program(manager.buffer),
    ):
        text = _program_to_json(program)
        assert _json_to_program(text) == copy.deepcopy(program)
    (plan,) = json.loads(text)["execution_plan"]
    assert plan["values"][0]["val_type"] == "Tensor"
    assert plan["chains"][0]["instructions"][0]["instr_args_type"] == "KernelCall"


def test_number_that_json_lacks_is_text():
    value = schema.EValue(schema.Double(float("-inf")))
    text = json.dumps(value, cls=_DataclassEncoder)
    assert json.loads(text) == {"val": {"double_val": "-inf"}, "val_type": "Double"}
    assert _json_to_dataclass(json.loads(text), schema.EValue) == value


def test_enumeration_may_be_a_name():
    wanted = schema.NonConstBufferDevice(1, schema.DeviceType.CUDA, 0)
    fields = json.loads(json.dumps(wanted, cls=_DataclassEncoder))
    assert fields["device_type"] == 1
    for given in (fields, {**fields, "device_type": "CUDA"}):
        found = _json_to_dataclass(given, schema.NonConstBufferDevice)
        assert found == wanted and found.device_type is schema.DeviceType.CUDA


@dataclass
class _Node:
    name: str
    data: bytes
    note: str | None
    parts: list[schema.Operator]


def test_dataclass_of_a_user_survives_json():
    node = _Node("a", b"\0\xff", None, [schema.Operator("aten::add", "out")])
    fields: dict[str, Any] = json.loads(json.dumps(node, cls=_DataclassEncoder))
    assert fields["data"] == [0, 255]
    assert _json_to_dataclass(fields, _Node) == node
    del fields["note"]
    assert _json_to_dataclass(fields, _Node) == node
    del fields["name"]
    with pytest.raises(TypeError, match="_Node: expected a field 'name', found"):
        _json_to_dataclass(fields, _Node)
    with pytest.raises(TypeError, match="no type 'Float'"):
        _json_to_dataclass({"val": {}, "val_type": "Float"}, schema.EValue)


def test_sizes_are_padded():
    assert [padding_required(size, 16) for size in (0, 1, 16, 17)] == [0, 15, 0, 15]
    assert aligned_size(17, 16) == 32
    assert pad_to(b"ab", 4) == b"ab\0\0"
    with pytest.raises(ValueError, match="3 bytes do not fit into 2"):
        pad_to(b"abc", 2)
