"""A Program to the bytes of a .pte file and back; `schema/program.fbs` and
`schema/extended_header.h` are the format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from executorch.exir._serialize._cord import Cord, in_memory
from executorch.exir._serialize._dataclass import _DataclassEncoder, _json_to_dataclass
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize.data_serializer import DataEntry, check_alignment
from executorch.exir.schema import (
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    Buffer,
    DataLocation,
    DataSegment,
    ExecutionPlan,
    NamedData,
    Program,
    SubsegmentOffsets,
)

_DEFAULT_ALIGNMENT = 16
_CACHE_LINE = 64
_ALIGNED_TO_LINES = 1024  # bytes of a constant; for less, gaps would cost more than they gain


@dataclass
class PTEFile:
    """A program with the data that the Program dataclass has no room for."""

    program: Program
    mutable_data: list[Buffer] | None = None
    named_data: NamedDataStoreOutput | None = None


def serialize_pte_binary(
    pte_file: PTEFile,
    *,
    extract_delegate_segments: bool = False,
    segment_alignment: int = 128,
    constant_tensor_alignment: int | None = None,
    delegate_alignment: int | None = None,
) -> Cord:
    """The file as a Cord that borrows all data. The segments are, in this order: constants, initial
    states, delegate blobs, named data. `pte_file` is not changed."""
    from executorch.exir import _native

    constants_alignment = _power_of_two(constant_tensor_alignment)
    delegates_alignment = _power_of_two(delegate_alignment)
    program = replace(pte_file.program)
    constants = program.constant_buffer
    segments: list[Any] = []
    if constants:
        index, offsets = _pack(constants, constant_tensor_alignment, segments)
        program.constant_segment = SubsegmentOffsets(index, offsets)
        program.constant_buffer = []
    if pte_file.mutable_data:
        index, offsets = _pack(pte_file.mutable_data, 1, segments)
        program.mutable_data_segments = [SubsegmentOffsets(index, offsets)]
    if extract_delegate_segments:
        _move_delegates(program, delegates_alignment, segments)
    if pte_file.named_data is not None and pte_file.named_data.pte_data:
        offsets = program.constant_segment.offsets
        program.named_data = _add_named_data(pte_file.named_data, segments, constants, offsets)
    alignments = (_power_of_two(segment_alignment), constants_alignment, delegates_alignment)
    return Cord(image=_native.write_program(program, segments, *alignments))


def _power_of_two(alignment: int | None) -> int:
    alignment = _DEFAULT_ALIGNMENT if alignment is None else alignment
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"alignment {alignment} is no power of two")
    return check_alignment("serialize_pte_binary", alignment)


def constant_alignment(size: int, wanted: int | None) -> int:
    """The alignment in bytes of a constant of `size` bytes: `wanted`, where that is given. Else
    large constants, which kernels read row by row, begin on a cache line, so that a row whose width
    is a multiple of a line's touches no line more than it fills."""
    if wanted is None and size >= _ALIGNED_TO_LINES:
        return _CACHE_LINE
    return _power_of_two(wanted)


def _pack(
    buffers: list[Buffer], alignment: int | None, segments: list[Any]
) -> tuple[int, list[int]]:
    """Appends one segment that holds all buffers; the first is reserved and empty."""
    from executorch.exir import _native

    alignments = [constant_alignment(len(b.storage), alignment) for b in buffers[1:]]
    segment = _native.Segment(max(alignments, default=1))
    offsets = [segment.append(b.storage, a) for b, a in zip(buffers[1:], alignments, strict=True)]
    segments.append(segment)
    return len(segments) - 1, [0, *offsets]


def _move_delegates(program: Program, alignment: int, segments: list[Any]) -> None:
    """Appends a segment per blob that is used; empty ones stay inline."""
    from executorch.exir import _native

    blobs = program.backend_delegate_data
    inline: list[BackendDelegateInlineData] = []
    moved: dict[int, BackendDelegateDataReference] = {}

    def move(reference: BackendDelegateDataReference) -> BackendDelegateDataReference:
        if reference.location is DataLocation.SEGMENT:
            raise ValueError("the program's delegate data is in segments already")
        if reference.index not in moved:
            blob = blobs[reference.index]
            if len(blob.data) == 0:
                inline.append(blob)
                place = BackendDelegateDataReference(DataLocation.INLINE, len(inline) - 1)
            else:
                segments.append(_native.Segment(alignment))
                segments[-1].append(blob.data)
                place = BackendDelegateDataReference(DataLocation.SEGMENT, len(segments) - 1)
            moved[reference.index] = place
        return moved[reference.index]

    program.execution_plan = [_with_delegates(plan, move) for plan in program.execution_plan]
    program.backend_delegate_data = inline


def _with_delegates(plan: ExecutionPlan, move: Any) -> ExecutionPlan:
    return replace(
        plan, delegates=[replace(d, processed=move(d.processed)) for d in plan.delegates]
    )


def _add_named_data(
    store: NamedDataStoreOutput, segments: list[Any], constants: list[Buffer], offsets: list[int]
) -> list[NamedData]:
    """Appends a segment per blob. Those that are constants too, at `offsets` of the first segment,
    are stored there only: a weight that an operator and a delegate share."""
    from executorch.exir import _native
    from executorch.exir._serialize._data_pool import DataPool

    pool = DataPool()
    offset_of = [0]
    for buffer, offset in list(zip(constants, offsets, strict=True))[1:]:
        if pool.add_bytes(_view(buffer.storage)) == len(offset_of):
            offset_of.append(offset)
    position: dict[int, int] = {}
    named = []
    for key, entry in store.pte_data.items():
        if entry.buffer_index not in position:
            position[entry.buffer_index] = len(segments)
            data = in_memory(store.buffers[entry.buffer_index])
            same = pool.find(_view(data))
            if same and offset_of[same] % entry.alignment == 0:
                segments.append(_native.Segment.part_of(0, offset_of[same], len(data)))
            else:
                segments.append(_native.Segment(entry.alignment))
                segments[-1].append(data)
        named.append(NamedData(key, position[entry.buffer_index]))
    return named


def _view(data: Any) -> Any:
    """Bytes as a DataPool takes them."""
    return memoryview(data) if isinstance(data, (bytes, bytearray)) else data


def deserialize_pte_binary(program_data: bytes) -> PTEFile:
    """The inverse of `serialize_pte_binary`; borrows from `program_data`.

    A constant's bytes reach to the next one, padding included: sizes are those of its tensors.
    ValueError for bytes that are no program or a damaged one.
    """
    from executorch.exir import _native

    program, base = _native.read_program(program_data)
    view = memoryview(program_data)

    def segment(index: int) -> memoryview:
        if index >= len(program.segments):
            raise ValueError(f"the program refers to segment {index} of {len(program.segments)}")
        place: DataSegment = program.segments[index]
        if base + place.offset + place.size > len(view):
            raise ValueError(f"segment {index} reaches beyond the file")
        return view[base + place.offset : base + place.offset + place.size]

    if len(program.constant_segment.offsets) > 0:
        program.constant_buffer = _unpack(program.constant_segment, segment)
    mutable_data = None
    if program.mutable_data_segments:
        mutable_data = _unpack(program.mutable_data_segments[0], segment)
    _restore_delegates(program, segment)
    named_data = _restore_named_data(program, segment)
    program.segments = []
    program.constant_segment = SubsegmentOffsets(0, [])
    program.mutable_data_segments = None
    program.named_data = []
    return PTEFile(program, mutable_data, named_data)


def _program_to_json(program: Program) -> str:
    """The tables of a program as JSON; `_json_to_program` reads it."""
    return json.dumps(program, cls=_DataclassEncoder)


def _json_to_program(program_json: bytes | str) -> Program:
    found: Program = _json_to_dataclass(json.loads(program_json), Program)
    return found


def _unpack(places: SubsegmentOffsets, segment: Any) -> list[Buffer]:
    data = segment(places.segment_index)
    ends = [*places.offsets[1:], len(data)]
    return [Buffer(data[a:b]) for a, b in zip(places.offsets, ends, strict=True)]


def _restore_delegates(program: Program, segment: Any) -> None:
    blobs: list[BackendDelegateInlineData] = []
    position: dict[tuple[DataLocation, int], int] = {}
    for plan in program.execution_plan:
        for delegate in plan.delegates:
            key = (delegate.processed.location, delegate.processed.index)
            if key not in position:
                position[key] = len(blobs)
                inline = key[0] is DataLocation.INLINE
                blobs.append(
                    program.backend_delegate_data[key[1]]
                    if inline
                    else BackendDelegateInlineData(segment(key[1]))
                )
            delegate.processed = BackendDelegateDataReference(DataLocation.INLINE, position[key])
    program.backend_delegate_data = blobs


def _restore_named_data(program: Program, segment: Any) -> NamedDataStoreOutput | None:
    if not program.named_data:
        return None
    indices: Sequence[int] = sorted({entry.segment_index for entry in program.named_data})
    position = {index: i for i, index in enumerate(indices)}
    entries = {e.key: DataEntry(position[e.segment_index], 1, None) for e in program.named_data}
    return NamedDataStoreOutput([segment(i) for i in indices], entries, {})
