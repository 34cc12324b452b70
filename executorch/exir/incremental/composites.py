"""Operators that the rules do not know, in terms of those that they do."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram, default_decompositions
from torch.fx import Node

from executorch.exir.incremental.einsum import EINSUM, is_understood
from executorch.exir.incremental.rules import is_known
from executorch.exir.program._decompose import decompose_only
from executorch.exir.torch_internals import DispatchKey, OpOverload, schema_of

aten = torch.ops.aten


def decompose_unknown(program: ExportedProgram) -> ExportedProgram:
    """A new program without the following, or `program` itself where it has none.

    Before    what torch or torchao composes of other operators and no rule knows (einsum,
              expand_as, choose_qparams_affine ...);
              what takes a size or a type from a tensor (ones_like, new_empty, type_as ...);
              one number put where a mask is true (x[mask] = 0), one place along a dim written;
              sub-graphs of what ran without gradients, writes into operands
    After     the operators of which they are composed; the same with the size or the type itself,
              so that they depend on the number of tokens, or nothing, but not on tokens; values;
              masked_fill; a slice of one place
    Leaves    all else as it is, attention and linear layers among it
    """
    computed = _computed_from_inputs(program)
    of_sizes = _computed_from_inputs(program, or_their_sizes=True)
    targets = {n.target for n in computed}
    composed: set[Any] = {n.target for n in of_sizes if _is_unknown_composite(n)}
    composed |= {n.target for n in computed if n.target is EINSUM and not is_understood(n)}
    taken = targets & _TAKEN.keys()
    if not composed and not taken and not any(_is_captured(n) for n in program.graph.nodes):
        return program
    known = default_decompositions() if composed else {}
    table: dict[Any, Any] = dict(_TAKEN)
    for op in composed:  # not by `get`, which does not know all that torch's table has
        table[op] = known[op] if op in known else op.decompose  # noqa: SIM401
    return decompose_only(program, table)


def _computed_from_inputs(program: ExportedProgram, or_their_sizes: bool = False) -> list[Node]:
    """Calls that take values of the program's inputs."""
    inputs = set(program.graph_signature.user_inputs)
    found: dict[Node, None] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in inputs:
            found[node] = None
        if (_has_tensors(node) or or_their_sizes) and any(n in found for n in node.all_input_nodes):
            found[node] = None
    return [n for n in found if n.op == "call_function"]


def _has_tensors(node: Node) -> bool:
    return isinstance(node.meta.get("val"), (Tensor, list, tuple))


def _is_unknown_composite(node: Node) -> bool:
    target = node.target
    return (
        _has_tensors(node)
        and isinstance(target, OpOverload)
        and target.namespace in ("aten", "torchao")
        and target.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
        and not is_known(target)
    )


def _is_captured(node: Node) -> bool:
    """A sub-graph of what ran without gradients, or a write into an operand."""
    if node.op == "get_attr":
        return True
    target = node.target
    return (
        isinstance(target, OpOverload)
        and schema_of(target).is_mutable
        and target is not aten.detach_.default
    )


def _full(like: Tensor, size: Any, value: Any, dtype: torch.dtype | None) -> Tensor:
    return torch.full(size, value, dtype=dtype or like.dtype)


def _filled(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Any:
    """x[mask] = values, where those are the same for all that the mask picks."""
    *all_before, mask = indices
    is_alone = mask is not None and not any(i is not None for i in all_before)
    is_one = all(isinstance(n, int) and n == 1 for n in values.shape)
    if accumulate or not is_alone or mask.dtype is not torch.bool or not is_one:
        return NotImplemented
    behind = x.dim() - len(all_before) - mask.dim()
    return x.masked_fill(mask.reshape([*mask.shape, *[1] * behind]), values.reshape([]))


def _select_scatter(x: Tensor, source: Tensor, dim: int, index: Any) -> Any:
    if not isinstance(index, int):
        return NotImplemented
    end = index + 1 if index != -1 else None
    return x.slice_scatter(source.unsqueeze(dim % x.dim()), dim, index, end)


# Of a tensor its size or its type is taken, not its values. Layout, device and memory format are
# the same for all tensors of a program.
_TAKEN: dict[Any, Any] = {
    aten.ones_like.default: lambda x, dtype=None, **_: _full(x, x.shape, 1, dtype),
    aten.zeros_like.default: lambda x, dtype=None, **_: _full(x, x.shape, 0, dtype),
    aten.full_like.default: lambda x, value, dtype=None, **_: _full(x, x.shape, value, dtype),
    aten.new_ones.default: lambda x, size, dtype=None, **_: _full(x, size, 1, dtype),
    aten.new_zeros.default: lambda x, size, dtype=None, **_: _full(x, size, 0, dtype),
    # What is not written yet may be anything: zeros, too.
    aten.new_empty.default: lambda x, size, dtype=None, **_: _full(x, size, 0, dtype),
    aten.empty_like.default: lambda x, dtype=None, **_: _full(x, x.shape, 0, dtype),
    aten.new_full.default: lambda x, size, value, dtype=None, **_: _full(x, size, value, dtype),
    # What was there is written over.
    aten.copy.default: lambda x, source, *_: source.to(x.dtype).expand(x.shape),
    aten.type_as.default: lambda x, other: x.to(other.dtype),
    aten.index_put.default: _filled,
    aten.select_scatter.default: _select_scatter,
    aten.to.other: lambda x, other, *_, **__: x.to(other.dtype),
}
