from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from typing import Any

from executorch.exir.schema import Bytes


class FileBackedData:
    """Bytes that stay in a file until they are written. With `cleanup` the file belongs to this
    object, which removes it at `close`, at the end of a `with` block or of its own life."""

    def __init__(self, path: str, cleanup: bool = False, sha256: bytes | None = None) -> None:
        self._path, self._sha256 = path, sha256
        self._size = os.path.getsize(path)
        self._end = weakref.finalize(self, _remove, path) if cleanup else None

    @classmethod
    def move_from(cls, path: str, sha256: bytes | None = None) -> FileBackedData:
        """Takes the file over, under another name in its folder."""
        folder = os.path.dirname(path) or "."
        handle, own = tempfile.mkstemp(prefix=".executorch_", suffix=".data", dir=folder)
        os.close(handle)
        try:
            os.replace(path, own)
        except OSError:
            os.remove(own)
            raise
        return cls(own, cleanup=True, sha256=sha256)

    def __len__(self) -> int:
        return self._size

    def view(self) -> memoryview:
        """The bytes, mapped; they stay readable after `close`."""
        if self._size == 0:
            return memoryview(b"")
        with open(self._path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def prefix(self, size: int) -> bytes:
        with open(self._path, "rb") as file:
            return file.read(size)

    def sha256(self) -> bytes:
        if self._sha256 is None:
            self._sha256 = hashlib.sha256(self.view()).digest()
        return self._sha256

    def to_bytes(self) -> bytes:
        return self.prefix(-1)

    def write_to_file(self, outfile: Any) -> None:
        with open(self._path, "rb") as file:
            shutil.copyfileobj(file, outfile)

    def close(self) -> None:
        if self._end is not None:
            self._end()

    def __enter__(self) -> FileBackedData:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _remove(path: str) -> None:
    with suppress(OSError):
        os.remove(path)


def in_memory(data: Any) -> Any:
    """What can be read as bytes: data in a file is mapped."""
    return data.view() if isinstance(data, FileBackedData) else data


class Cord:
    """A long byte string as a list of borrowed pieces; no piece is copied before it is written."""

    def __init__(
        self, data: Bytes | FileBackedData | Cord | None = None, image: Any = None
    ) -> None:
        from executorch.exir import _native

        self._image: Any = _native.FileImage() if image is None else image
        if data is not None:
            self.append(data)

    def append(self, data: Bytes | FileBackedData | Cord) -> None:
        self._image.append(data._image if isinstance(data, Cord) else in_memory(data))

    def __len__(self) -> int:
        return self._image.size

    def __bytes__(self) -> bytes:
        return self._image.to_bytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (bytes(self),)

    def write_to_file(self, outfile: Any) -> None:
        """Write to a binary file object, or anything with its `write`."""
        self._image.write_to(outfile)

    def save(self, path: Any, progress: Any = None) -> None:
        """Write to `path`, which afterwards has its old content or all of the new.

        `progress(done, total)` in bytes is called now and then. OSError names the path.
        """
        import os

        self._image.save(os.fspath(path), progress)
