"""Progress of long loops, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_PATIENCE_SECONDS = 2.0
_INTERVAL_SECONDS = 5.0


def steps(items: Sequence[T], what: str) -> Iterator[T]:
    """Iterates over the items. After 2 seconds stderr shows a bar if it is a terminal, else a
    line every 5 seconds."""
    due = time.monotonic() + _PATIENCE_SECONDS
    bar = None
    try:
        for done, item in enumerate(items):
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)
            elif time.monotonic() > due and sys.stderr.isatty():
                bar = _start(what, len(items), done)
            elif time.monotonic() > due:
                print(f"{what}: {done} of {len(items)}", file=sys.stderr, flush=True)
                due = time.monotonic() + _INTERVAL_SECONDS
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
