"""A progress bar for what takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_PATIENCE_SECONDS = 2.0


def steps(items: Sequence[T], what: str) -> Iterator[T]:
    """The items; on a terminal, a bar appears on stderr once they take more than 2 seconds."""
    started = time.monotonic()
    bar = None
    try:
        for done, item in enumerate(items):
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)
            elif time.monotonic() - started > _PATIENCE_SECONDS and sys.stderr.isatty():
                bar = _start(what, len(items), done)
            yield item
    finally:
        if bar is not None:
            bar.stop()


def _start(what: str, total: int, done: int):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total, completed=done)
    bar.start()
    return bar
