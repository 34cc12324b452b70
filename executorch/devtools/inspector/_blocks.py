"""From the events of an ETDump to event blocks.

Events of one place, that is one instruction of a chain or one operation of a delegate in it, belong
together: what a kernel logs goes to its own event and to that of its instruction. Runs that have
the same events are merged: an event has one duration for every time it happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from executorch.devtools.etdump.schema_flatcc import (
    DebugEvent,
    ETDumpFlatCC,
    ProfileEvent,
    RunData,
    Tensor,
    Value,
)
from executorch.devtools.inspector._events import Event, EventBlock, PerfData, TimeConverter
from executorch.devtools.inspector._inspector_utils import flat
from executorch.devtools.progress import steps
from executorch.exir.tensor import get_scalar_type

_UINT32_MAX = 2**32 - 1
_NO_CHAIN = 2**64 - 1  # as debug events, whose chains have no sign, write -1


class _Place(NamedTuple):
    chain: int
    instruction: int
    delegate_id: int | str | None


@dataclass
class _Recorded:
    """What was recorded at one place: profile events by name, in order, and values."""

    profiles: dict[str | None, list[ProfileEvent]] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)


@dataclass
class _Run:
    places: dict[_Place, _Recorded]
    outputs: list[Any]
    allocations: dict[str, list[int]]


class BlockReader:
    """Makes event blocks of a dump, without what only an ETRecord knows.

    factor         divides times
    convert        turns times of delegates instead, if given
    debug_buffer   the bytes that recorded tensors point into; without them tensors read as zeros
    """

    def __init__(
        self, factor: float, convert: TimeConverter | None, debug_buffer: Any | None
    ) -> None:
        self._factor = factor
        self._convert = convert
        self._debug_buffer = debug_buffer

    def blocks(self, dump: ETDumpFlatCC) -> list[EventBlock]:
        merged: dict[Any, list[_Run]] = {}
        for number, run_data in enumerate(dump.run_data):
            run = self._run(run_data, f"run {number} ({run_data.name!r})")
            keys = tuple((place, name) for place, r in run.places.items() for name in _names(r))
            signature = (run_data.name, run_data.bundled_input_index, keys)
            merged.setdefault(signature, []).append(run)
        return [self._block(name, index, runs) for (name, index, _), runs in merged.items()]

    def _run(self, data: RunData, where: str) -> _Run:
        allocators = [a.name or "" for a in data.allocators or ()]
        run = _Run({}, [], {name: [] for name in allocators})
        for number, event in enumerate(data.events or ()):
            debug, profile = event.debug_event, event.profile_event
            allocation = event.allocation_event
            if debug is not None:
                value = self._value(debug.debug_entry, f"{where}, event {number}")
                if debug.debug_entry.output is not None and debug.debug_entry.output.bool_val:
                    run.outputs.append(value)
                else:
                    _recorded(run, debug).values.append(value)
            elif profile is not None:
                _recorded(run, profile).profiles.setdefault(profile.name, []).append(profile)
            elif allocation is not None:
                if not 1 <= allocation.allocator_id <= len(allocators):
                    raise ValueError(
                        f"{where}, event {number}: allocator {allocation.allocator_id} of "
                        f"{len(allocators)}"
                    )
                name = allocators[allocation.allocator_id - 1]
                run.allocations[name].append(allocation.allocation_size)
        return run

    def _block(self, name: str, index: int | None, runs: list[_Run]) -> EventBlock:
        first = runs[0]
        for run in runs[1:]:
            for place, recorded in first.places.items():
                where = f"instruction {place.instruction} of {name!r}"
                _check_equal(recorded.values, run.places[place].values, where)
            _check_equal(first.outputs, run.outputs, f"outputs of {name!r}")
        block = EventBlock(name, bundled_input_index=index, run_output=first.outputs)
        for run in runs:
            for allocator, sizes in run.allocations.items():
                block.allocations.setdefault(allocator, []).extend(sizes)
        for place, recorded in steps(list(first.places.items()), f"merging {name}"):
            for event_name in _names(recorded):
                profiles = [p for r in runs for p in r.places[place].profiles.get(event_name, ())]
                block.events.append(self._event(place, event_name, profiles, recorded.values))
        return block

    def _event(
        self, place: _Place, name: str | None, profiles: list[ProfileEvent], values: list[Any]
    ) -> Event:
        delegated = place.delegate_id is not None
        return Event(
            name=str(place.delegate_id) if delegated else name or "",
            perf_data=PerfData([self._duration(p, place) for p in profiles]) if profiles else None,
            delegate_debug_identifier=place.delegate_id,
            is_delegated_op=delegated,
            debug_data=list(values),
            _delegate_debug_metadatas=[
                p.delegate_debug_metadata for p in profiles if p.delegate_debug_metadata
            ],
            _instruction_id=place.instruction,
            _delegate_time_scale_converter=self._convert,
            _start_time=[p.start_time for p in profiles] or None,
        )

    def _duration(self, profile: ProfileEvent, place: _Place) -> float:
        start, end = profile.start_time, profile.end_time
        identifier = place.delegate_id
        if identifier is None:
            return _ticks(start, end) / self._factor
        if self._convert is not None:
            return self._convert(identifier, end) - self._convert(identifier, start)
        return end / self._factor - start / self._factor

    # ---- values ----

    def _value(self, value: Value, where: str) -> Any:
        if value.tensor is not None:
            return self._tensor(value.tensor, where)
        if value.tensor_list is not None:
            return [self._tensor(t, where) for t in value.tensor_list.tensors]
        if value.int_value is not None:
            return value.int_value.int_val
        if value.float_value is not None:
            return value.float_value.float_val
        if value.double_value is not None:
            return value.double_value.double_val
        if value.bool_value is not None:
            return value.bool_value.bool_val
        return None

    def _tensor(self, tensor: Tensor, where: str) -> torch.Tensor:
        dtype = get_scalar_type(tensor.scalar_type)
        sizes = tensor.sizes
        if self._debug_buffer is None or tensor.offset is None or tensor.offset < 0:
            return torch.zeros(sizes, dtype=dtype)
        count = torch.Size(sizes).numel()
        end = tensor.offset + count * dtype.itemsize
        if end > len(self._debug_buffer):
            raise ValueError(
                f"{where}: the tensor at {tensor.offset} ends at {end}, but the debug buffer has "
                f"{len(self._debug_buffer)} bytes"
            )
        if count == 0:
            return torch.zeros(sizes, dtype=dtype)
        flat_tensor = torch.frombuffer(
            self._debug_buffer, dtype=dtype, count=count, offset=tensor.offset
        )
        if _reaches(tensor) == count:
            return flat_tensor.as_strided(sizes, tensor.strides)
        return flat_tensor.reshape(sizes)


def _reaches(tensor: Tensor) -> int:
    """How many elements lie between the first and the last, both included."""
    if len(tensor.strides) != len(tensor.sizes) or min(tensor.strides, default=1) < 0:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(tensor.sizes, tensor.strides, strict=True))
    return last + 1


def _recorded(run: _Run, event: ProfileEvent | DebugEvent) -> _Recorded:
    chain = -1 if event.chain_index == _NO_CHAIN else event.chain_index
    identifier: int | str | None = event.delegate_debug_id_str or None
    if identifier is None and event.delegate_debug_id_int not in (None, -1):
        identifier = event.delegate_debug_id_int
    return run.places.setdefault(_Place(chain, event.instruction_id, identifier), _Recorded())


def _names(recorded: _Recorded) -> Iterable[str | None]:
    return recorded.profiles or (None,)


def _ticks(start: int, end: int) -> int:
    """Clocks of 32 bits start anew at 0."""
    if end < start <= _UINT32_MAX:
        return _UINT32_MAX - start + end
    return end - start


def _check_equal(first: list[Any], other: list[Any], where: str) -> None:
    a, b = flat(first), flat(other)
    if len(a) != len(b) or not all(map(_equal, a, b)):
        raise AssertionError(
            f"{where}: corresponding debug events in multiple iterations of the model must have "
            "the same debug entry values; they differ, so the model or the runtime gives "
            "different results for what was recorded"
        )


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        same = a.shape == b.shape and a.dtype == b.dtype
        return same and torch.equal(a.nan_to_num(), b.nan_to_num())
    return bool(a == b) or (a != a and b != b)
