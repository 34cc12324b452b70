from __future__ import annotations

import random

import pytest

from executorch.devtools.etdump.schema_flatcc import (
    AllocationEvent,
    Allocator,
    Bool,
    DebugEvent,
    Double,
    ETDumpFlatCC,
    Event,
    Float,
    Int,
    ProfileEvent,
    RunData,
    ScalarType,
    Tensor,
    TensorList,
    Value,
)
from executorch.devtools.etdump.serialize import (
    deserialize_from_etdump_flatcc,
    serialize_to_etdump_flatcc,
)

NO_CHAIN = 2**64 - 1


def profile(name=None, **fields) -> Event:
    values = {
        "chain_index": 0,
        "instruction_id": 0,
        "delegate_debug_id_int": -1,
        "delegate_debug_id_str": None,
        "delegate_debug_metadata": None,
        "start_time": 1,
        "end_time": 2**63 + 5,
    }
    return Event(ProfileEvent(name=name, **{**values, **fields}), None, None)


def debug(kind: str, field: str | None = None, content=None, output=None, chain=0) -> Event:
    value = Value(kind, None, None, None, None, None, None, output)
    if field is not None:
        setattr(value, field, content)
    return Event(None, None, DebugEvent(None, chain, 3, -1, None, value))


def full_dump() -> ETDumpFlatCC:
    tensor = Tensor(ScalarType.FLOAT, [2, 3], [3, 1], 64)
    events = [
        profile("native_call_add.out"),
        profile(chain_index=-1, delegate_debug_id_int=7, delegate_debug_metadata=b"\0\xff"),
        profile(delegate_debug_id_str="konvolution ü", delegate_debug_metadata=b""),
        debug("Tensor", "tensor", tensor),
        debug(
            "TensorList", "tensor_list", TensorList([tensor, Tensor(ScalarType.INT, [], [], -1)])
        ),
        debug("Int", "int_value", Int(-(2**63))),
        debug("Float", "float_value", Float(0.5)),
        debug("Double", "double_value", Double(0.1)),
        debug("Bool", "bool_value", Bool(True), output=Bool(True), chain=NO_CHAIN),
        debug("Null"),
        Event(None, AllocationEvent(1, 2**40), None),
    ]
    return ETDumpFlatCC(
        0,
        [
            RunData("Default", -1, [Allocator("method"), Allocator("temp")], None),
            RunData("Execute", 2, None, events),
        ],
    )


@pytest.mark.parametrize("size_prefixed", [False, True])
def test_a_dump_survives_being_written_and_read(size_prefixed):
    data = serialize_to_etdump_flatcc(full_dump(), size_prefixed)
    assert deserialize_from_etdump_flatcc(data, size_prefixed) == full_dump()


@pytest.mark.parametrize("size_prefixed", [True, False])
def test_a_dump_may_lie_at_any_address(size_prefixed):
    data = serialize_to_etdump_flatcc(full_dump(), size_prefixed)
    for shift in range(16):
        view = memoryview(bytes(shift) + data)[shift:]
        assert deserialize_from_etdump_flatcc(view, size_prefixed) == full_dump()


def test_a_size_prefixed_dump_begins_with_the_size_of_the_rest():
    data = serialize_to_etdump_flatcc(full_dump(), size_prefixed=True)
    assert int.from_bytes(data[:4], "little") == len(data) - 4
    assert data[8:12] == b"ED00"


def damaged(dump: ETDumpFlatCC) -> str:
    with pytest.raises(ValueError) as error:
        deserialize_from_etdump_flatcc(serialize_to_etdump_flatcc(dump), size_prefixed=False)
    return str(error.value)


def one_event(event: Event) -> ETDumpFlatCC:
    return ETDumpFlatCC(0, [RunData("Execute", -1, None, [profile("a"), event])])


@pytest.mark.parametrize(
    ("dump", "message"),
    [
        (ETDumpFlatCC(3, []), "ETDump: version 3, not 0"),
        (one_event(Event(None, None, None)), "ETDump: run_data[0].events[1]: it is of 0 kinds"),
        (one_event(debug("Tensor")), "events[1]: its value is a Tensor without content"),
        (
            one_event(debug("Tensor", "tensor", Tensor(ScalarType.INT, [1, 2], [1], 0))),
            "its tensor has 2 sizes and 1 strides",
        ),
        (
            one_event(debug("Tensor", "tensor", Tensor(ScalarType.INT, [-1], [1], 0))),
            "its tensor has the size -1",
        ),
        (
            one_event(debug("Tensor", "tensor", Tensor(ScalarType.INT, [], [], -2))),
            "its tensor lies at the offset -2",
        ),
        (
            one_event(debug("Tensor", "tensor", Tensor(19, [], [], 0))),
            "its tensor is of the unknown type 19",
        ),
        (ETDumpFlatCC(0, [RunData(None, -1, None, None)]), "run_data[0]: it has no name"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(dump, message):
    assert message in damaged(dump)


def test_other_files_and_cut_off_ones_are_refused():
    data = serialize_to_etdump_flatcc(full_dump(), size_prefixed=True)
    with pytest.raises(ValueError, match="not an ETDump"):
        deserialize_from_etdump_flatcc(b"")
    with pytest.raises(ValueError, match="not an ETDump"):
        deserialize_from_etdump_flatcc(data, size_prefixed=False)
    with pytest.raises(ValueError, match=f"announces {len(data)} bytes, the file has"):
        deserialize_from_etdump_flatcc(data[:-1])


def test_a_damaged_byte_is_refused_or_gives_a_dump():
    data = serialize_to_etdump_flatcc(full_dump(), size_prefixed=True)
    random.seed(0)
    refused = 0
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << random.randrange(8)
        try:
            deserialize_from_etdump_flatcc(flipped)
        except ValueError:
            refused += 1
    assert 0 < refused < len(data)


def test_a_number_that_does_not_fit_is_named():
    with pytest.raises(OverflowError, match="ProfileEvent.start_time: -1"):
        serialize_to_etdump_flatcc(one_event(profile("b", start_time=-1)))
    with pytest.raises(ValueError, match="Value.val: unknown kind Complex"):
        serialize_to_etdump_flatcc(one_event(debug("Complex")))
