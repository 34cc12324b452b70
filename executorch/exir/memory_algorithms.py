"""The algorithms of exir/memory_planning: where the tensors of an arena lie.

An algorithm is a function (alignment, specs, graph_module, graph_signature, extra_padding) that
gives each spec a memory id (1-based) and a byte offset and returns the size of every arena:
[0, bytes of arena 1, ...]. `smallest` is the default, `greedy` and `naive` have the conventional
results. A spec may come with a memory id; each arena is planned for itself.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate
from typing import Any

from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule

from executorch.exir.share_storage import owners_and_nested
from executorch.exir.tensor import TensorSpec

_log = logging.getLogger(__name__)


@dataclass
class SpecAllocResult:
    mem_id: int
    mem_obj_id: int
    mem_offset: int


@dataclass
class MemoryAlgoResult:
    """What an algorithm decided, before it is written into the specs."""

    spec_dict: dict[TensorSpec, SpecAllocResult]
    bufsizes: list[int]


def by_arena(specs: Iterable[TensorSpec]) -> dict[int, list[TensorSpec]]:
    arenas: dict[int, list[TensorSpec]] = defaultdict(list)
    for spec in specs:
        arenas[1 if spec.mem_id is None else spec.mem_id].append(spec)
    return arenas


def _blocks(specs: Iterable[TensorSpec], alignment: int) -> list[tuple[int, int, int]]:
    """(bytes, first node, last node) of every spec."""
    return [(spec.realign(alignment), *spec.lifetime) for spec in specs]


def bufsizes(totals: dict[int, int], extra_padding: int) -> list[int]:
    sizes = [0] * (max(totals, default=1) + 1)
    if len(sizes) < 2:
        sizes.append(0)
    for mem_id, total in totals.items():
        sizes[mem_id] = total + extra_padding if total else 0
    return sizes


def with_nested(algo: Callable[..., MemoryAlgoResult]) -> Callable[..., MemoryAlgoResult]:
    """Let `algo` place what has memory of its own; what lies in others follows its base."""

    @wraps(algo)
    def place(
        alignment: int, specs: Iterable[TensorSpec], *rest: Any, **options: Any
    ) -> MemoryAlgoResult:
        owners, nested = owners_and_nested(specs)
        result = algo(alignment, owners, *rest, **options)
        for spec in nested:
            base = result.spec_dict[spec.storage_base]  # type: ignore[index]
            offset = base.mem_offset + spec.storage_base_offset
            result.spec_dict[spec] = SpecAllocResult(base.mem_id, base.mem_obj_id, offset)
        return result

    return place


# Of the specs of one arena: offsets, the arena's size, numbers of the objects that they share.
_Placement = tuple[Sequence[int], int, Sequence[int]]


def _place_arenas(
    specs: Iterable[TensorSpec],
    extra_padding: int,
    place: Callable[[list[TensorSpec]], _Placement],
) -> MemoryAlgoResult:
    """Place the specs of each arena by `place`; arenas do not depend on each other."""
    found: dict[TensorSpec, SpecAllocResult] = {}
    totals: dict[int, int] = {}
    for mem_id, group in by_arena(specs).items():
        offsets, totals[mem_id], objects = place(group)
        for spec, offset, obj in zip(group, offsets, objects, strict=True):
            found[spec] = SpecAllocResult(mem_id, obj, offset)
    return MemoryAlgoResult(found, bufsizes(totals, extra_padding))


@with_nested
def naive(
    alignment: int,
    specs: Iterable[TensorSpec],
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    extra_padding: int = 0,
) -> MemoryAlgoResult:
    """Every spec behind the one before it: no two share memory."""

    def place(group: list[TensorSpec]) -> _Placement:
        ends = list(accumulate((spec.realign(alignment) for spec in group), initial=0))
        return ends[:-1], ends[-1], range(len(group))

    return _place_arenas(specs, extra_padding, place)


@with_nested
def greedy(
    alignment: int,
    specs: Iterable[TensorSpec],
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    extra_padding: int = 0,
    *,
    allow_overlapping_allocations: bool = True,
) -> MemoryAlgoResult:
    """Put specs into shared objects, the largest spec first: into the first object that is free
    during the spec's life; else (if allowed) beside others in the first object with room for it;
    else into a new one."""
    from executorch.exir import _native

    def place(group: list[TensorSpec]) -> _Placement:
        return _native.plan_greedy(_blocks(group, alignment), allow_overlapping_allocations)

    return _place_arenas(specs, extra_padding, place)


@with_nested
def smallest(
    alignment: int,
    specs: Iterable[TensorSpec],
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    extra_padding: int = 0,
) -> MemoryAlgoResult:
    """The smallest of several placements (exir/native/offset_planner.h), never above `greedy`."""
    from executorch.exir import _native

    def place(group: list[TensorSpec]) -> _Placement:
        offsets, total, strategy = _native.plan_best(_blocks(group, alignment))
        _log.debug("%d tensors placed %s", len(group), strategy)
        return offsets, total, range(len(group))

    return _place_arenas(specs, extra_padding, place)
