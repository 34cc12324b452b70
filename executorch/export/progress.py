"""What a long command is doing, on stderr: a bar on a terminal, and else a line for each step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], None]


@contextmanager
def show_progress(n_steps: int) -> Iterator[tuple[Step, Step]]:
    """Two functions: one that begins the next of `n_steps`, one that says more of the present."""
    if not sys.stderr.isatty():
        number = 0

        def announce(what: str) -> None:
            nonlocal number
            number += 1
            print(f"[{number}/{n_steps}] {what}", file=sys.stderr, flush=True)

        yield announce, lambda what: print(f"  {what}", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    text = TextColumn("{task.description}")
    bar = Progress(*columns, TimeElapsedColumn(), text, console=Console(stderr=True))
    with bar:
        task = bar.add_task("load", total=n_steps)
        begun = 0

        def begin(what: str) -> None:
            nonlocal begun
            bar.update(task, description=what, completed=begun)
            begun += 1

        yield begin, lambda what: bar.update(task, description=what)
        bar.update(task, completed=n_steps, description="done")
