"""Dynamic dimensions stay dynamic: what would fix one of them is an error."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy
import torch

Dimension = tuple[str, torch.SymInt]


@contextmanager
def watch_sizes(dynamic: Mapping[Any, Dimension]) -> Iterator[Sizes]:
    """Listen for decisions that a size equals a number. PyTorch, whose guards are closed after the
    export, only mentions them in its log.

    dynamic  symbol of each dynamic dimension -> where the user finds it, and the size
    """
    sizes = Sizes(dynamic)
    if not dynamic:
        yield sizes
        return
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level, propagates, others = log.level, log.propagate, log.handlers[:]
    quiet = log.getEffectiveLevel() > logging.INFO
    log.addHandler(sizes)
    if quiet:  # records below the level that the user chose reach `sizes` only
        log.setLevel(logging.INFO)
        log.propagate = False
        for handler in others:
            log.removeHandler(handler)
    try:
        yield sizes
    finally:
        log.handlers[:] = others
        log.propagate = propagates
        log.setLevel(level)


class Sizes(logging.Handler):
    """Collects what PyTorch's log says of guards that come too late: (expression, its value)."""

    def __init__(self, dynamic: Mapping[Any, Dimension]) -> None:
        super().__init__(logging.INFO)
        self.dynamic = dynamic
        self.guards: list[tuple[Any, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("Ignored guard") and isinstance(record.args, tuple):
            self.guards.append((record.args[0], record.args[1]))

    def check(self, who: str) -> None:
        """RuntimeError if `who` fixed a dynamic size since the last check."""
        guards, self.guards = self.guards, []
        for guard, held in guards:
            fixed = [
                s for s in self.dynamic if held and isinstance(guard, sympy.Eq) and guard.has(s)
            ]
            numbers = [side for side in guard.args if getattr(side, "is_number", False)]
            if fixed and numbers:
                place, _ = self.dynamic[fixed[0]]
                raise _fixed(place, who, f"{guard.lhs} = {guard.rhs}")
        for symbol, (place, size) in self.dynamic.items():
            value = size.node.shape_env.replacements.get(symbol)
            if value is not None and value.is_number:
                raise _fixed(place, who, f"{symbol} = {value}")


def _fixed(place: str, who: str, equation: str) -> RuntimeError:
    return RuntimeError(
        f"{place} was declared dynamic, but {who} fixes it: {equation}; declare it static, or find "
        "the code that needs that value"
    )
