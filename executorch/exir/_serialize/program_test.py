import contextlib
import copy
import io
import os

import pytest
import torch
from torch import nn

from executorch.exir import ExecutorchBackendConfig, _native, schema, to_edge
from executorch.exir._serialize import _deserialize_pte_binary, _PTEFile, _serialize_pte_binary
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._serialize._serialize import serialize_for_executorch
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
from executorch.exir.emit import EmitterOutput
from executorch.exir.scalar_type import ScalarType
from executorch.exir.tensor_layout import TensorLayout
from executorch.exir.version import EXECUTORCH_SCHEMA_VERSION
from executorch.extension.flat_tensor.serialize.serialize import (
    AlignedData,
    FlatTensorConfig,
    FlatTensorHeader,
    FlatTensorSerializer,
)


def _tensor(**changes):
    fields = dict(
        scalar_type=ScalarType.FLOAT,
        storage_offset=0,
        sizes=[2, 3],
        dim_order=[0, 1],
        requires_grad=True,
        layout=0,
        data_buffer_idx=1,
        allocation_info=schema.AllocationDetails(1, 16, 2),
        shape_dynamism=schema.TensorShapeDynamism.DYNAMIC_BOUND,
        extra_tensor_info=schema.ExtraTensorInfo(0, "a.b", schema.TensorDataLocation.EXTERNAL),
    )
    return schema.Tensor(**{**fields, **changes})


def _program():
    """Every table and every member of both unions."""
    values = [
        schema.Null(),
        schema.Int(-(2**62)),
        schema.Bool(True),
        schema.Double(float("inf")),
        _tensor(),
        _tensor(allocation_info=None, extra_tensor_info=None, sizes=[], dim_order=[]),
        schema.String("grüße"),
        schema.IntList([1, 1]),
        schema.DoubleList([0.5, -2.0]),
        schema.BoolList([True, False]),
        schema.TensorList([4, 5]),
        schema.OptionalTensorList([4, -1]),
    ]
    calls = [
        schema.KernelCall(0, [4, 5, 5]),
        schema.DelegateCall(0, [4]),
        schema.MoveCall(4, 5),
        schema.JumpFalseCall(2, 5),
        schema.FreeCall(4),
    ]
    frames = [schema.FrameList([schema.Frame("m.py", 3, "forward", "x + 1")])] * len(calls)
    plan = schema.ExecutionPlan(
        name="forward",
        container_meta_type=schema.ContainerMetadata("in", "out"),
        values=[schema.EValue(v) for v in values],
        inputs=[4],
        outputs=[5],
        chains=[schema.Chain([], [], [schema.Instruction(c) for c in calls], frames)],
        operators=[schema.Operator("aten::relu", "out"), schema.Operator("aten::copy_", "")],
        delegates=[
            schema.BackendDelegate(
                "Demo",
                schema.BackendDelegateDataReference(schema.DataLocation.INLINE, i),
                [schema.CompileSpec("k", b"\x00v")],
            )
            for i in (0, 1)
        ],
        non_const_buffer_sizes=[0, 48],
        non_const_buffer_device=[schema.NonConstBufferDevice(1, schema.DeviceType.CUDA, 2)],
    )
    blobs = [schema.BackendDelegateInlineData(b"blob"), schema.BackendDelegateInlineData(b"")]
    constants = [schema.Buffer(b""), schema.Buffer(bytes(range(24))), schema.Buffer(b"xyz")]
    return schema.Program(0, [plan], constants, blobs, [], schema.SubsegmentOffsets(0, []))


def _file(**named):
    store = NamedDataStore()
    for key, data in named.items():
        store.add_named_data(key, data, alignment=64)
    mutable = [schema.Buffer(b""), schema.Buffer(b"state")]
    return _PTEFile(_program(), mutable, store.get_named_data_store_output())


def _plain(buffers):
    return [bytes(b.storage) for b in buffers]


@pytest.mark.parametrize("segments", [False, True])
def test_everything_survives_writing_and_reading(segments):
    data = bytes(_serialize_pte_binary(_file(w=b"12345"), extract_delegate_segments=segments))
    read = _deserialize_pte_binary(data)
    want = _program()
    assert read.program.execution_plan == want.execution_plan
    assert read.program.named_data == []  # they are beside the program
    assert _plain(read.mutable_data) == [b"", b"state"]
    assert [bytes(d.data) for d in read.program.backend_delegate_data] == [b"blob", b""]
    assert bytes(read.named_data.buffers[read.named_data.pte_data["w"].buffer_index]) == b"12345"
    constants = _plain(read.program.constant_buffer)
    assert constants[1][:24] == bytes(range(24)) and constants[2] == b"xyz"


def test_segments_are_ordered_and_aligned():
    data = bytes(
        _serialize_pte_binary(_file(w=b"12345", v=b"12345"), extract_delegate_segments=True)
    )
    program, base = _native.read_program(data)
    assert data[4:12] == b"ET12eh00" and base % 128 == 0
    # constants (24 bytes, padding to 32, 3 bytes), state, blob, one segment for equal named data
    assert [(s.offset, s.size) for s in program.segments] == [(0, 35), (128, 5), (256, 4), (384, 5)]
    assert program.constant_segment == schema.SubsegmentOffsets(0, [0, 0, 32])
    assert [n.segment_index for n in program.named_data] == [3, 3]
    assert len(data) == base + 389


def test_named_data_that_is_a_constant_too_is_stored_once():
    file = _file()
    store = NamedDataStore()
    store.add_named_data("shared", b"xyz", alignment=16)
    store.add_named_data("not aligned there", bytes(range(24)), alignment=64)
    store.add_named_data("own", b"zyx", alignment=16)
    file.named_data = store.get_named_data_store_output()
    data = bytes(_serialize_pte_binary(file))
    program, _ = _native.read_program(data)
    shared, own = program.segments[2], program.segments[4]
    assert (shared.offset, shared.size) == (32, 3) and own.offset > shared.offset
    read = _deserialize_pte_binary(data)
    for key in store.pte_data:
        found = read.named_data.buffers[read.named_data.pte_data[key].buffer_index]
        assert bytes(found) == store.buffers[store.pte_data[key].buffer_index]


def test_a_segment_is_no_part_of_what_is_not_there():
    part = _native.Segment.part_of(0, 1, 3)
    whole = _native.Segment(1)
    whole.append(b"abc")
    with pytest.raises(ValueError, match="part of bytes"):
        _native.write_program(_program(), [whole, part], 1, 1, 1)


def test_program_without_data_is_a_bare_flatbuffer():
    program = schema.Program(
        0, _program().execution_plan, [schema.Buffer(b"")], [], [], schema.SubsegmentOffsets(0, [])
    )
    program.execution_plan[0].delegates = []
    data = bytes(_serialize_pte_binary(_PTEFile(program)))
    assert data[8:12] != b"eh00"
    read, base = _native.read_program(data)
    assert base == 0
    assert [(s.offset, s.size) for s in read.segments] == [(0, 0)]
    assert read.constant_segment.offsets == [0]


def test_wide_alignment_keeps_inline_data_aligned():
    cord = _serialize_pte_binary(_file(), delegate_alignment=64, constant_tensor_alignment=256)
    data = bytes(cord)
    assert data.index(b"blob") % 64 == 0
    program, _ = _native.read_program(data)
    assert program.constant_segment.offsets == [0, 0, 256]


def test_constants_that_are_read_by_rows_begin_with_a_cache_line():
    weight = bytes(range(256)) * 4
    file = _file()
    file.program.constant_buffer = [
        schema.Buffer(b""),
        schema.Buffer(b"bias"),
        schema.Buffer(weight),
        schema.Buffer(b"bias 2"),
    ]
    data = bytes(_serialize_pte_binary(file))
    program, base = _native.read_program(data)
    assert program.constant_segment.offsets == [0, 0, 64, 64 + 1024]
    assert data.index(weight) % 64 == 0 and base % 64 == 0
    packed = bytes(_serialize_pte_binary(file, constant_tensor_alignment=16))
    program, _ = _native.read_program(packed)
    assert program.constant_segment.offsets == [0, 0, 16, 16 + 1024]


def test_alignment_beyond_a_page_is_refused():
    with pytest.raises(ValueError, match="4096"):
        _serialize_pte_binary(_file(), delegate_alignment=8192)


@pytest.mark.parametrize("alignment", [0, -1, 24])
def test_alignments_must_be_powers_of_two(alignment):
    with pytest.raises(ValueError, match="power of two"):
        _serialize_pte_binary(_file(), segment_alignment=alignment)


def test_alignments_beyond_the_largest_page_are_refused():
    with pytest.raises(ValueError, match="alignment from 1 to 1073741824 bytes, found 92233720"):
        _serialize_pte_binary(_file(), segment_alignment=2**63)


def test_numbers_that_do_not_fit_are_named():
    file = _file()
    file.program.execution_plan[0].values[4].val.sizes = [2**31]
    with pytest.raises(OverflowError, match=r"Tensor.sizes: 2147483648"):
        _serialize_pte_binary(file)


def test_objects_outside_the_union_are_named():
    file = _file()
    file.program.execution_plan[0].values[0].val = 3
    with pytest.raises(TypeError, match=r"EValue.val.*int"):
        _serialize_pte_binary(file)


@pytest.mark.parametrize("cut", [10, 200, -1])
def test_damaged_files_are_refused(cut):
    data = bytes(_serialize_pte_binary(_file()))
    with pytest.raises(ValueError):
        _deserialize_pte_binary(data[:cut])
    with pytest.raises(ValueError, match="ET12"):
        _deserialize_pte_binary(b"\x00" * 100)


def test_flipped_bytes_never_crash_the_reader():
    data = bytearray(bytes(_serialize_pte_binary(_file(w=b"1"), extract_delegate_segments=True)))
    for at in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        with contextlib.suppress(ValueError, IndexError):
            _deserialize_pte_binary(bytes(damaged))


class _Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


def _manager(config=None):
    torch.manual_seed(0)
    model = _Tied().eval()
    edge = to_edge(torch.export.export(model, (torch.tensor([[1, 2]]),)))
    return edge.to_executorch(config), model


def test_equal_models_give_equal_bytes():
    assert _manager()[0].buffer == _manager()[0].buffer


def test_all_ways_of_writing_give_the_same_bytes(tmp_path):
    manager, _ = _manager()
    path = tmp_path / "tied.pte"
    done = []
    manager.save(path, progress=lambda n, total: done.append((n, total)))
    stream = io.BytesIO()
    manager.write_to_file(stream)
    assert path.read_bytes() == stream.getvalue() == manager.buffer
    assert done[-1] == (len(manager.buffer),) * 2
    with open(tmp_path / "raw", "wb", buffering=0) as raw:
        manager.write_to_file(raw)
    assert (tmp_path / "raw").read_bytes() == manager.buffer
    with pytest.raises(TypeError, match="expected a binary file object, found .*raw'; save writes"):
        manager.write_to_file(str(tmp_path / "raw"))


class _Calls(io.RawIOBase):
    """A file that takes at most a million bytes at once."""

    def __init__(self):
        self.written, self.asked = bytearray(), []

    def write(self, data):
        self.asked.append(len(data))
        self.written += bytes(data[:1_000_000])
        return min(len(data), 1_000_000)


def test_files_are_written_in_whole_huge_pages(tmp_path):
    mib = 1 << 20
    matrix = torch.randint(256, (1500, 3001), dtype=torch.uint8)  # over two blocks
    large = torch.randint(256, (9 * mib + 5,), dtype=torch.uint8)
    transposed = _native.TransposedBytes(matrix.numpy().reshape(-1), 3001, 1500, 1)
    image = _native.FileImage()
    for piece in (b"head", large.numpy(), b"", transposed, b"tail"):
        image.append(piece)
    expected = b"head" + large.numpy().tobytes() + matrix.mT.contiguous().numpy().tobytes()
    expected += b"tail"
    assert image.to_bytes() == expected
    image.save(str(tmp_path / "image"), None)
    assert (tmp_path / "image").read_bytes() == expected
    calls = _Calls()
    image.write_to(calls)
    assert calls.written == expected
    position = 0
    for asked in calls.asked:  # up to the next huge page, or the end
        assert (position + asked) % (2 * mib) == 0 or position + asked == len(expected)
        position += min(asked, 1_000_000)


def test_weights_are_borrowed_not_copied():
    manager, model = _manager()
    storage = manager.executorch_program.constant_buffer[1].storage
    assert _native.address_of(storage) == model.embed.weight.data_ptr()


def test_failed_save_keeps_the_old_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "model.pte"
    path.write_bytes(b"old")

    def fail(done, total):
        raise RuntimeError("stop")

    manager, _ = _manager()
    with pytest.raises(RuntimeError, match="stop"):
        manager.save(path, progress=fail)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.pte"]


def test_save_errors_name_the_path(tmp_path):
    manager, _ = _manager()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        manager.save(tmp_path / "nowhere" / "model.pte")
    with pytest.raises(ValueError, match=r"\.pte"):
        manager.save(tmp_path / "model.bin")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_full_devices_are_reported(tmp_path):
    link = tmp_path / "full.pte"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        _manager()[0].save(link)


def test_files_of_external_constants_are_named_without_folders():
    for name, error in ((3, TypeError), ("", ValueError), ("../weights", ValueError)):
        config = ExecutorchBackendConfig(external_constants=lambda node, name=name: name)
        with pytest.raises(error, match="external constants: .*weight: expected .*name"):
            _manager(config)


def test_external_constants_go_to_files(tmp_path):
    config = ExecutorchBackendConfig(external_constants=lambda node: "weights")
    manager, model = _manager(config)
    manager.write_tensor_data_to_file(tmp_path)
    data = (tmp_path / "weights.ptd").read_bytes()
    assert data[4:8] == b"FT01" and data[8:12] == b"FH01"
    weight = model.embed.weight.detach()
    found = _native.read_flat_tensor(data)
    for layout, content in found.values():
        assert layout == (int(ScalarType.FLOAT), [50, 8], [0, 1])
        assert content == weight.numpy().tobytes()
    names = {
        v.val.extra_tensor_info.fully_qualified_name
        for v in manager.executorch_program.execution_plan[0].values
        if isinstance(v.val, schema.Tensor) and v.val.extra_tensor_info is not None
    }
    assert names == set(found)
    assert len(manager.executorch_program.constant_buffer) == 1


def test_data_of_two_keys_are_in_a_file_once():
    store = NamedDataStore()
    for key in ("a", "b"):
        store.add_named_data(key, b"x" * 10_000, 16, "weights")
    emitted = EmitterOutput(_program(), {}, {}, {}, None, [], {})
    named = store.get_named_data_store_output()
    _, files = serialize_for_executorch(
        emitted, ExecutorchBackendConfig(), FlatTensorSerializer(), named
    )
    data = bytes(files["weights"])
    assert len(data) < 15_000
    found = _native.read_flat_tensor(data)
    assert {key: bytes(content) for key, (_, content) in found.items()} == dict.fromkeys(
        ("a", "b"), b"x" * 10_000
    )


def test_flat_tensor_survives_writing_and_reading():
    layout = TensorLayout(ScalarType.BYTE, [3], [0])
    payload = DataPayload(
        [b"abc", b"opaque"],
        {"t": DataEntry(0, 16, layout), "u": DataEntry(0, 1, layout), "o": DataEntry(1, 64, None)},
    )
    cord = FlatTensorSerializer().serialize(payload)
    read = FlatTensorSerializer().deserialize(cord)
    for key, entry in payload.named_data.items():
        assert read.named_data[key].tensor_layout == entry.tensor_layout
        assert (
            read.buffers[read.named_data[key].buffer_index] == payload.buffers[entry.buffer_index]
        )
    with pytest.raises(ValueError):
        _native.read_flat_tensor(bytes(cord)[:-1])


@pytest.mark.parametrize("alignment", [0, -1, 2**63, 1.5])
def test_alignments_of_data_are_checked(alignment):
    config = FlatTensorConfig(segment_alignment=alignment)
    with pytest.raises(ValueError, match="FlatTensorConfig.segment_alignment: expected .*found"):
        FlatTensorSerializer(config).serialize(DataPayload([], {}))
    if alignment != 0:
        payload = DataPayload([b"abc"], {"k": DataEntry(0, alignment, None)})
        with pytest.raises(ValueError, match=f"named data 'k': expected .*found {alignment}"):
            FlatTensorSerializer().serialize(payload)
    store = NamedDataStore()
    with pytest.raises(ValueError, match=f"named data 'k': expected .*found {alignment}"):
        store.add_named_data("k", b"abc", alignment)
    assert not store.buffers and not store.pte_data


def test_data_entries_without_an_alignment_lie_anywhere():
    payload = DataPayload([b"abc"], {"k": DataEntry(0, 0, None), "l": DataEntry(0, 2, None)})
    file = FlatTensorSerializer().serialize(payload)
    assert bytes(FlatTensorSerializer().deserialize(file).buffers[0]) == b"abc"


def test_alignments_that_share_bytes_are_checked_together():
    entries = {"a": DataEntry(0, 2**30 - 1, None), "b": DataEntry(0, 2**30, None)}
    with pytest.raises(ValueError, match="named data 'b': expected an alignment"):
        FlatTensorSerializer().serialize(DataPayload([b"abc"], entries))


def test_headers_of_files_of_data_are_read_and_written():
    payload = DataPayload([b"0123456789"], {"key": DataEntry(0, 1, None)})
    file = bytes(FlatTensorSerializer(FlatTensorConfig(segment_alignment=64)).serialize(payload))
    header = FlatTensorHeader.from_bytes(file[8:])
    assert header.is_valid() and header.to_bytes() == file[8:48]
    assert file[header.segment_base_offset :][: header.segment_data_size].startswith(b"0123456789")
    assert header.flatbuffer_offset + header.flatbuffer_size <= header.segment_base_offset
    other = FlatTensorHeader.from_bytes(b"XX01" + header.to_bytes()[4:])
    assert not other.is_valid() and other.to_bytes() == header.to_bytes()
    assert not FlatTensorHeader(0, 0, 0, 0, length=39).is_valid()
    with pytest.raises(ValueError, match="has 40 bytes, found 39"):
        FlatTensorHeader.from_bytes(file[8:47])


def test_data_without_an_alignment_may_lie_anywhere():
    assert AlignedData(Cord(b"abc")).alignment == 1
    assert AlignedData(Cord(b"abc"), 64).alignment == 64


def test_programs_are_of_the_schema_version():
    program = to_edge(torch.export.export(nn.ReLU(), (torch.ones(2),))).to_executorch()
    assert program.executorch_program.version == EXECUTORCH_SCHEMA_VERSION


def test_files_of_data_are_read_as_stores_hold_them():
    payload = DataPayload([b"abc"], {"k": DataEntry(0, 16, None)})
    written = bytes(FlatTensorSerializer().serialize(payload))
    read = FlatTensorSerializer().deserialize_to_named_data_store_output(written, "file")
    assert read.buffers == [b"abc"] and read.pte_data == {}
    assert list(read.external_data["file"]) == ["k"]


def test_named_data_keys_are_unique():
    store = NamedDataStore()
    store.add_named_data("k", b"1")
    store.add_named_data("k", b"1")
    with pytest.raises(ValueError, match="'k'"):
        store.add_named_data("k", b"2")


def test_copies_of_named_data_have_keys_of_their_own_and_share_buffers():
    store = NamedDataStore()
    store.add_named_data("inline", torch.arange(3))
    store.add_named_data("outside", b"ext", 8, "file")
    kept = copy.deepcopy(store.get_named_data_store_output())
    assert kept == store.get_named_data_store_output()
    store.externalize_pte_data(64, "moved")
    assert list(kept.pte_data) == ["inline"] and list(kept.external_data) == ["file"]
