"""Core ATen for operators outside of it that `torch.export` leaves whole.

`core_table` is torch's default table, decompositions that torch has and leaves out of it, and rules
written here. An operator that the runtime has a kernel for has no rule. In rules, `self` and so on
are as in the operator's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from executorch.exir.program._decompositions import (  # noqa: F401 (they add their rules)
    arithmetic,
    matrices,
    order,
    padding,
    random_numbers,
    resizing,
    scatter,
    sequences,
)
from executorch.exir.program._decompositions._rule import RULES
from executorch.exir.torch_internals import OpOverload, get_decompositions

_aten = torch.ops.aten

# Decompositions of torch's own that end in core operators.
_OF_TORCH = """
    _addmm_activation.default _batch_norm_no_update.default
    _batch_norm_with_update_functional.default _fused_dropout.default
    _native_batch_norm_legit_functional.default addmm.dtype addmv.default
    batch_norm_backward.default bitwise_and.Scalar_Tensor bitwise_left_shift.Scalar_Tensor
    bitwise_or.Scalar_Tensor bitwise_right_shift.Scalar_Tensor bitwise_xor.Scalar_Tensor
    cauchy.default copysign.Scalar dist.default exponential.default ldexp.Tensor
    linalg_vector_norm.default log_normal.default native_batch_norm.default
    new_empty_strided.default remainder.Scalar_Tensor rrelu_with_noise_backward.default
    special_zeta.other_scalar special_zeta.self_scalar tril_indices.default triu_indices.default
    upsample_bicubic2d.default upsample_trilinear3d.default
""".split()  # noqa: SIM905 (one name per line would be a page)


def core_table() -> dict[OpOverload, Callable[..., Any]]:
    """Operator -> decomposition, of all that are known by now."""
    table = dict(torch.export.default_decompositions())
    table.update(get_decompositions(_of_torch()))
    table.update(RULES)
    return table


def beyond_torch(ops: Iterable[OpOverload]) -> set[OpOverload]:
    """Those of `ops` that have a decomposition here and none in torch's default table."""
    ours = {*_of_torch(), *RULES}.intersection(ops)
    # Making that table takes long, and most configurations name none of `ours`.
    return ours.difference(torch.export.default_decompositions()) if ours else ours


def _of_torch() -> list[OpOverload]:
    names = [name.split(".") for name in _OF_TORCH]
    return [getattr(getattr(_aten, packet), overload) for packet, overload in names]
