"""Inputs at the boundaries of a model's dynamic dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from executorch.exir.torch_internals import tree_flatten, tree_unflatten

_LARGEST = 2**31  # a bound beyond this is "no bound"


def boundary_inputs(
    exported: ExportedProgram, inputs: tuple[Any, ...], largest: Sequence[Sequence[int] | None]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """For every dynamic dimension and each of its boundary sizes (1, 2, a prime, max - 1, max):
    what it is called, and `inputs` with that size. Tensors are cut or repeated, so integers stay
    the indices they are.

    exported  the model, exported with its dynamic shapes
    largest   the sizes for which the program has room, one entry for each flat input
    """
    flat, spec = tree_flatten(inputs)
    shapes = _symbolic_shapes(exported, flat)
    for symbol, low, high in _ranges(exported, shapes, largest):
        for size in _sizes(low, high):
            resized = [
                _resize(value, _sizes_at(shape, symbol, size, value))
                for value, shape in zip(flat, shapes, strict=True)
            ]
            place = _dimension_of(symbol, shapes, _input_names(exported))
            yield f"{place} = {size}", tree_unflatten(resized, spec)


def _input_names(exported: ExportedProgram) -> list[str]:
    specs = exported.graph_signature.input_specs
    return [str(s.arg.name) for s in specs if s.kind is InputKind.USER_INPUT]  # type: ignore[union-attr]


def _symbolic_shapes(exported: ExportedProgram, flat: Sequence[Any]) -> list[list[Any]]:
    """For each flat input its sizes: numbers, and SymPy expressions where they are dynamic."""
    known = {n.name: n.meta.get("val") for n in exported.graph.find_nodes(op="placeholder")}
    shapes: list[list[Any]] = []
    for value, name in zip_longest(flat, _input_names(exported)[: len(flat)]):
        meta = known.get(name)
        if not isinstance(value, Tensor) or not isinstance(meta, Tensor):
            shapes.append([])
            continue
        shapes.append([d if isinstance(d, int) else d.node.expr for d in meta.shape])
    return shapes


def _ranges(
    exported: ExportedProgram,
    shapes: Sequence[Sequence[Any]],
    largest: Sequence[Sequence[int] | None],
) -> Iterator[tuple[Any, int, int]]:
    for symbol, allowed in exported.range_constraints.items():
        if not symbol.is_symbol:
            continue
        # A program of another model may take inputs of another number or rank: running it says so.
        room = [
            most[d]
            for shape, most in zip(shapes, largest, strict=False)
            for d, size in enumerate(shape)
            if size == symbol and most is not None and d < len(most)
        ]
        high = int(allowed.upper) if allowed.upper < _LARGEST else _LARGEST
        high = min([high, *room])
        if high < _LARGEST:
            yield symbol, int(allowed.lower), high


def _sizes(low: int, high: int) -> list[int]:
    prime = next((p for p in range((low + high) // 2, 2, -1) if _is_prime(p)), 3)
    return sorted({n for n in (1, 2, prime, high - 1, high) if max(low, 1) <= n <= high})


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _dimension_of(symbol: Any, shapes: Sequence[Sequence[Any]], names: Sequence[str]) -> str:
    for i, shape in enumerate(shapes):
        for d, size in enumerate(shape):
            if size == symbol:
                return f"input {i} ({names[i]}), dimension {d}"
    return str(symbol)


def _sizes_at(shape: Sequence[Any], symbol: Any, size: int, value: Any) -> list[int]:
    """The sizes of one input when `symbol` is `size` and every other symbol stays as it is."""
    return [
        int(expr.subs(symbol, size))
        if hasattr(expr, "free_symbols") and symbol in expr.free_symbols
        else value.shape[d]
        for d, expr in enumerate(shape)
    ]


def _resize(value: Any, sizes: Sequence[int]) -> Any:
    if not isinstance(value, Tensor) or list(value.shape) == list(sizes):
        return value
    for dim, size in enumerate(sizes):
        if value.shape[dim] == 0:
            value = torch.cat([value, value.new_zeros(_with(value.shape, dim, size))], dim)
        elif value.shape[dim] != size:
            index = torch.arange(size) % value.shape[dim]
            value = value.index_select(dim, index)
    return value


def _with(shape: Sequence[int], dim: int, size: int) -> list[int]:
    return [size if d == dim else n for d, n in enumerate(shape)]
