"""The values of `slice_copy` and `select_copy` where bounds depend on data.

PyTorch computes fake values of the views, `slice` and `select`, without knowing whether a bound
is negative or beyond the end. For the copies it asks, and fails. Importing this module teaches it
that a copy has the sizes of the view, unless it has learnt that by itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from executorch.exir.torch_internals import OpOverload, has_meta_kernel

aten = torch.ops.aten


def _copied(view_op: OpOverload, x: Tensor, *args: Any) -> Tensor:
    """What `view_op` gives, as a tensor of its own.

    Where a view begins may be a new symbol. No result has it, so that it must not be waited for.
    """
    environments = [n.node.shape_env for n in (*x.shape, *args) if isinstance(n, SymInt)]
    before = {e: set(e.pending_fresh_unbacked_symbols) for e in environments}
    view = view_op(x, *args)
    for environment, known in before.items():
        known |= free_unbacked_symbols(view.shape)
        pending = environment.pending_fresh_unbacked_symbols
        environment.pending_fresh_unbacked_symbols = [s for s in pending if s in known]
    return view.clone(memory_format=torch.contiguous_format)


def _slice_copy(
    x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return _copied(aten.slice.Tensor, x, dim, start, end, step)


def _select_copy(x: Tensor, dim: int, index: int) -> Tensor:
    return _copied(aten.select.int, x, dim, index)


for _op, _fake in ((aten.slice_copy.Tensor, _slice_copy), (aten.select_copy.int, _select_copy)):
    if not has_meta_kernel(_op):
        torch.library.register_fake(_op.name(), _fake)
