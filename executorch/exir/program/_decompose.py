"""Step one: composite operators become core ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram


@cache
def core_table() -> dict[OpOverload, Callable[..., Any]]:
    """Operator -> its decomposition: torch's defaults and `linalg_vector_norm`. Not to be changed."""
    from torch._decomp import get_decompositions

    table = dict(torch.export.default_decompositions())
    table.update(get_decompositions([torch.ops.aten.linalg_vector_norm]))
    return table


def decompose(program: ExportedProgram, keep: Sequence[OpOverload] = ()) -> ExportedProgram:
    """`program` in core operators, as a new one; operators in `keep` stay."""
    table = {op: how for op, how in core_table().items() if op not in set(keep)}
    new = program.run_decompositions(table)
    new._state_dict = dict(new.state_dict)
    return new
