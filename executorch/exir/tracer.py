"""Types and tables of the tracer that came before `torch.export`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from executorch.exir.torch_internals import OpOverload, get_decompositions

# What a traced function takes and returns.
LeafValue = None | str | int | bool | float | torch.Tensor
Value = LeafValue | tuple["Value", ...] | list["Value"] | dict[str, "Value"]  # type: ignore


def _default_decomposition_table(
    _use_old_decomp_table: bool = False,
) -> dict[OpOverload, Callable[..., Any]]:
    """Decompositions to core ATen, as a new dict for `ExportedProgram.run_decompositions`."""
    if _use_old_decomp_table:
        aten = torch.ops.aten
        old: list[Any] = [aten.log_sigmoid_forward, aten.ones, aten.transpose]
        old += [aten.arange.default, aten.arange.start]
        return dict(get_decompositions(old))  # type: ignore[arg-type]
    from executorch.exir.program._decompositions import core_table

    return dict(core_table())
