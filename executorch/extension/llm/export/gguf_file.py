"""Which tensors a GGUF file holds, and where. A file is not trusted: whatever it says is compared
with its length before it is used, and ValueError says where it is wrong."""

from __future__ import annotations

import itertools
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_DIMS = 4
MAX_DEPTH = 4  # of arrays in arrays
# The formats of scalars by the file's numbers of types; 8 is a text, 9 an array.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TEXT, _ARRAY = 8, 9

# Number of a type of tensors -> its name, elements of a block, bytes of a block.
TYPES = {
    0: ("f32", 1, 4),
    1: ("f16", 1, 2),
    2: ("q4_0", 32, 18),
    8: ("q8_0", 32, 34),
    12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210),
    30: ("bf16", 1, 2),
}


@dataclass(frozen=True)
class TensorPlace:
    """`shape` is torch's: the last dimension is the one whose elements lie side by side."""

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int  # from the beginning of the file
    n_bytes: int


class GGUFFile:
    """metadata  what the file says of the model, by name, but for arrays, which are skipped
    tensors    those of a known type and others, in the file's order"""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            file.seek(0, 2)
            empty = file.tell() == 0
            self.data: Any = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.path = path
        self.metadata: dict[str, Any] = {}
        self.tensors: list[TensorPlace] = []
        self._at = 0
        self._read()

    def _read(self) -> None:
        magic, version = self._numbers("4sI")
        if magic != b"GGUF" or version not in (2, 3):
            raise self._wrong(f"GGUF of version 2 or 3 is expected, not {magic!r}, {version}")
        n_tensors, n_entries = self._numbers("QQ")
        self._require(n_entries, 13, "entries")
        for _ in range(n_entries):
            key = self._text()
            (kind,) = self._numbers("I")
            value = self._value(kind, 0)
            if kind != _ARRAY:
                self.metadata[key] = value
        self._require(n_tensors, 24, "tensors")
        found = [self._tensor() for _ in range(n_tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise self._wrong(f"general.alignment is {alignment!r}")
        begin = -(-self._at // alignment) * alignment
        names = set()
        for name, shape, kind, offset in found:
            if name in names:
                raise self._wrong(f"there are two tensors {name!r}")
            names.add(name)
            self.tensors.append(self._place(name, shape, kind, begin + offset))
        self._require_apart()

    def _require_apart(self) -> None:
        """A file of few bytes must not stand for weights of many."""
        by_place = sorted((t for t in self.tensors if t.n_bytes), key=lambda t: t.offset)
        for before, after in itertools.pairwise(by_place):
            if before.offset + before.n_bytes > after.offset:
                raise self._wrong(
                    f"tensors {before.name!r} and {after.name!r} lie over each other, at byte "
                    f"{after.offset}"
                )

    def _place(self, name: str, shape: tuple[int, ...], kind: int, offset: int) -> TensorPlace:
        if kind not in TYPES:
            raise self._wrong(
                f"tensor {name!r} is of type {kind}; known are "
                f"{', '.join(t for t, _, _ in TYPES.values())}"
            )
        type_name, block, block_bytes = TYPES[kind]
        n = 1
        for size in shape:
            n *= size
        row = shape[-1] if shape else 1
        if row % block:
            raise self._wrong(f"rows of {row} of tensor {name!r} are no blocks of {block}")
        n_bytes = n // block * block_bytes
        if offset + n_bytes > len(self.data):
            raise self._wrong(
                f"tensor {name!r}, {list(shape)} of {type_name}, ends at byte {offset + n_bytes} "
                f"of {len(self.data)}"
            )
        return TensorPlace(name, shape, type_name, offset, n_bytes)

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text()
        (n_dims,) = self._numbers("I")
        if n_dims > MAX_DIMS:
            raise self._wrong(f"tensor {name!r} has {n_dims} dimensions; {MAX_DIMS} are the most")
        shape = self._numbers(f"{n_dims}Q")
        kind, offset = self._numbers("IQ")
        return name, tuple(reversed(shape)), kind, offset

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _SCALARS:
            return self._numbers(_SCALARS[kind])[0]
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY or depth == MAX_DEPTH:
            raise self._wrong(f"a value of type {kind}, below {depth} arrays")
        item, count = self._numbers("IQ")
        if item in _SCALARS:
            size = struct.calcsize("<" + _SCALARS[item])
            self._require(count, size, "elements")
            self._at += count * size
            return None
        self._require(count, 8, "elements")
        for _ in range(count):
            if item == _TEXT:
                self._skip_text()
            else:
                self._value(item, depth + 1)
        return None

    def _numbers(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize("<" + form)
        self._require(1, size, "bytes")
        found = struct.unpack_from("<" + form, self.data, self._at)
        self._at += size
        return found

    def _skip_text(self) -> int:
        """Where a text begins, whose end is then reached."""
        (length,) = self._numbers("Q")
        self._require(length, 1, "bytes of a text")
        begin = self._at
        self._at += length
        return begin

    def _text(self) -> str:
        begin = self._skip_text()
        try:
            return bytes(self.data[begin : self._at]).decode()
        except UnicodeDecodeError as error:
            raise self._wrong(f"a text that is no UTF-8: {error}") from None

    def _require(self, count: int, size: int, what: str) -> None:
        if count * size > len(self.data) - self._at:
            raise self._wrong(f"{count} {what} of {size} bytes at least exceed the file")

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"{self.path}, byte {self._at}: {what}")

    def __iter__(self) -> Iterator[tuple[TensorPlace, memoryview]]:
        """Each tensor with its bytes, which lie in the file."""
        view = memoryview(self.data)
        for place in self.tensors:
            yield place, view[place.offset : place.offset + place.n_bytes]
