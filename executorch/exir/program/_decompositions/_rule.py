"""Where rules are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from executorch.exir.torch_internals import OpOverload

RULES: dict[OpOverload, Callable[..., Any]] = {}


def rule(*ops: OpOverload | str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is what `ops` stand for; it may return NotImplemented. An operator that not
    every release of torch has is given by name, as "cholesky.default"."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        there = [_named(op) if isinstance(op, str) else op for op in ops]
        RULES.update(dict.fromkeys([op for op in there if op is not None], function))
        return function

    return add


def _named(name: str) -> OpOverload | None:
    operator, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, operator, None), overload, None)
