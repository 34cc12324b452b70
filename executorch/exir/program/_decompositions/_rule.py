"""Where rules are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from executorch.exir.torch_internals import OpOverload

RULES: dict[OpOverload, Callable[..., Any]] = {}


def rule(*ops: OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is what `ops` stand for; it may return NotImplemented."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return add
