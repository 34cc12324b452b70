from __future__ import annotations

from typing import Any

from executorch.exir.schema import Bytes


class Cord:
    """A long byte string as a list of borrowed pieces; no piece is copied before it is written."""

    def __init__(self, data: Bytes | Cord | None = None, image: Any = None) -> None:
        from executorch.exir import _native

        self._image: Any = _native.FileImage() if image is None else image
        if data is not None:
            self.append(data)

    def append(self, data: Bytes | Cord) -> None:
        self._image.append(data._image if isinstance(data, Cord) else data)

    def __len__(self) -> int:
        return self._image.size

    def __bytes__(self) -> bytes:
        return self._image.to_bytes()

    def write_to_file(self, outfile: Any) -> None:
        """Write to a binary file object, or anything with its `write`."""
        self._image.write_to(outfile)

    def save(self, path: Any, progress: Any = None) -> None:
        """Write to `path`, which afterwards has its old content or all of the new.

        `progress(done, total)` in bytes is called now and then. OSError names the path.
        """
        import os

        self._image.save(os.fspath(path), progress)
