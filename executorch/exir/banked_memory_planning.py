"""Plans memory for machines that have several memories, each of a known size.

`TargetMemoryMap` lists them, the fastest first. Tensors fill the fastest bank that has room, the
next one where it has none, and an export whose tensors fit nowhere fails, not the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule

from executorch.exir.memory_algorithms import (
    MemoryAlgoResult,
    SpecAllocResult,
    bufsizes,
    with_nested,
)
from executorch.exir.memory_planning import (
    AllocationSpec,
    MemoryPlanningAlgorithmSuite,
    SharedObject,
    Verifier,
    get_node_tensor_specs,
)
from executorch.exir.passes.memory_planning_pass import MemoryPlanningPass
from executorch.exir.schema import DeviceType
from executorch.exir.tensor import TensorSpec

__all__ = [
    "Bank",
    "BankPlacementError",
    "BankedGreedy",
    "TargetMemoryMap",
    "banked_memory_planning_pass",
    "format_placement_report",
    "planned_mem_ids",
]


class BankPlacementError(Exception):
    """The banks cannot hold what has to be planned."""


@dataclass(frozen=True)
class Bank:
    """A memory that the planner fills.

    size       bytes for the program's tensors, what else lies in the memory taken off
    mem_id     the arena, from 1; the application gives the runtime its memory in this order
    alignment  bytes, of every tensor in it: a multiple of the pass's alignment; None: that one
    """

    name: str
    size: int
    mem_id: int
    alignment: int | None = None

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise ValueError(f"bank {self.name}: expected a positive size, found {self.size}")
        if self.mem_id < 1:
            raise ValueError(f"bank {self.name}: expected a mem_id from 1, found {self.mem_id}")
        if self.alignment is not None and self.alignment < 1:
            raise ValueError(
                f"bank {self.name}: expected a positive alignment, found {self.alignment}"
            )


class TargetMemoryMap:
    """The banks, in the order in which tensors are offered to them: the fastest first.

    Arenas that are no bank's are left alone: only tensors that a pass has put there lie there.
    """

    def __init__(self, banks: Sequence[Bank]) -> None:
        if not banks:
            raise ValueError("TargetMemoryMap: expected one bank or more, found none")
        for field in ("name", "mem_id"):
            found = [getattr(bank, field) for bank in banks]
            if len(set(found)) < len(found):
                raise ValueError(f"TargetMemoryMap: two banks have the same {field}: {found}")
        self.banks = list(banks)
        self._by_id = {bank.mem_id: bank for bank in banks}

    def mem_ids(self) -> list[int]:
        """The banks' arenas, in the banks' order."""
        return list(self._by_id)

    def manages(self, mem_id: int) -> bool:
        """Whether the arena is a bank."""
        return mem_id in self._by_id

    def bank(self, mem_id: int) -> Bank:
        if mem_id not in self._by_id:
            raise ValueError(f"arena {mem_id} is no bank; there are {self.describe()}")
        return self._by_id[mem_id]

    def mem_id(self, name: str) -> int:
        """The arena of the bank of that name."""
        for bank in self.banks:
            if bank.name == name:
                return bank.mem_id
        raise ValueError(f"no bank is named {name!r}; there are {self.describe()}")

    def describe(self) -> str:
        return ", ".join(f"{b.name} (arena {b.mem_id}, {b.size} bytes)" for b in self.banks)


class BankedGreedy:
    """A memory planning algorithm that puts tensors into banks, the largest first.

    Tensors that have a `mem_id` stay in that arena and are placed first, so that nothing takes
    their room. Each other one goes to the first bank that has a piece free during its life, or
    room for a new piece. With one bank the result is that of `greedy`.
    BankPlacementError if a tensor fits nowhere, or does not lie in the host's memory.
    """

    def __init__(self, target: TargetMemoryMap, allow_overlapping_allocations: bool = True) -> None:
        self.target = target
        self.allow_overlapping_allocations = allow_overlapping_allocations
        self.__name__ = "banked_greedy"

    def __call__(
        self,
        alignment: int,
        specs: Iterable[TensorSpec],
        graph_module: GraphModule,
        graph_signature: ExportGraphSignature | None = None,
        extra_padding: int = 0,
    ) -> MemoryAlgoResult:
        specs = list(specs)
        self._check(alignment, specs)
        return with_nested(self._place)(alignment, specs, extra_padding)

    def _place(self, alignment: int, specs: list[TensorSpec], padding: int) -> MemoryAlgoResult:
        filling = _Filling(self, alignment, padding)
        for pinned in (True, False):
            chosen = [spec for spec in specs if (spec.mem_id is not None) == pinned]
            for spec in _largest_first(chosen, alignment):
                filling.add(spec)
        return filling.result()

    def _check(self, alignment: int, specs: list[TensorSpec]) -> None:
        for bank in self.target.banks:
            if bank.alignment is not None and bank.alignment % alignment:
                raise BankPlacementError(
                    f"bank {bank.name}: expected an alignment that is a multiple of the pass's, "
                    f"{alignment}, found {bank.alignment}"
                )
        devices = {spec.device.name for spec in specs if spec.device is not DeviceType.CPU}
        if devices:
            raise BankPlacementError(
                f"banks are memory of the CPU, but the method has tensors on {sorted(devices)}"
            )


def _largest_first(specs: list[TensorSpec], alignment: int) -> list[TensorSpec]:
    """In the order of `greedy`: of equal sizes the last comes first."""
    return sorted(reversed(specs), key=lambda spec: -spec.realign(alignment))


class _Filling:
    """Arenas while they are filled: their pieces, each with the specs in it."""

    def __init__(self, planner: BankedGreedy, alignment: int, padding: int) -> None:
        self.target = planner.target
        self.overlapping = planner.allow_overlapping_allocations
        self.alignment = alignment
        self.padding = padding
        self.pieces: dict[int, list[SharedObject]] = {}
        self.found: dict[TensorSpec, tuple[int, SharedObject, int]] = {}

    def add(self, spec: TensorSpec) -> None:
        arenas = self.target.mem_ids() if spec.mem_id is None else [spec.mem_id]
        if not any(self._put(spec, mem_id) for mem_id in arenas):
            raise BankPlacementError(self._refusal(spec, arenas))

    def _put(self, spec: TensorSpec, mem_id: int) -> bool:
        """Whether the arena took the spec."""
        bank = self.target.bank(mem_id) if self.target.manages(mem_id) else None
        size = spec.realign((bank.alignment if bank else None) or self.alignment)
        pieces = self.pieces.setdefault(mem_id, [])
        place = self._free_place(pieces, spec)
        if place is None:
            used = self._used(mem_id) or self.padding
            if bank is not None and size > 0 and used + size > bank.size:
                return False
            pieces.append(SharedObject(len(pieces), -1, size, *spec.lifetime))
            place = pieces[-1], 0
        piece, offset = place
        piece.allocations.append(AllocationSpec(offset, spec))
        self.found[spec] = (mem_id, piece, offset)
        return True

    def _free_place(
        self, pieces: list[SharedObject], spec: TensorSpec
    ) -> tuple[SharedObject, int] | None:
        """A piece and an offset where the spec can lie without a byte more of memory."""
        large = [piece for piece in pieces if piece.size >= spec.allocated_memory]
        met = [[a for a in p.allocations if Verifier.lifetime_overlap(a.spec, spec)] for p in large]
        for piece, alive in zip(large, met, strict=True):
            if not alive:
                return piece, 0
        for piece, alive in zip(large, met, strict=True) if self.overlapping else ():
            end = max(a.offset + a.spec.allocated_memory for a in alive)
            if end + spec.allocated_memory <= piece.size:
                return piece, end
        return None

    def _used(self, mem_id: int) -> int:
        size = sum(piece.size for piece in self.pieces.get(mem_id, ()))
        return size + self.padding if size else 0

    def _refusal(self, spec: TensorSpec, arenas: list[int]) -> str:
        room = ", ".join(
            f"{bank.name} has {bank.size - self._used(bank.mem_id)} of {bank.size} bytes left"
            for bank in map(self.target.bank, arenas)
        )
        what = f"a tensor of {spec.allocated_memory} bytes, shape {list(spec.shape)}"
        if spec.mem_id is None:
            return f"{what}, fits in no bank: {room}. Tensors go to no arena that is no bank."
        return f"{what}, has to lie in arena {spec.mem_id}, but {room}"

    def result(self) -> MemoryAlgoResult:
        starts = {
            mem_id: list(accumulate((piece.size for piece in pieces), initial=0))
            for mem_id, pieces in self.pieces.items()
        }
        places = {
            spec: SpecAllocResult(mem_id, piece.idx, starts[mem_id][piece.idx] + offset)
            for spec, (mem_id, piece, offset) in self.found.items()
        }
        # One arena for each bank, whether or not there is anything in it.
        totals = {mem_id: 0 for mem_id in self.target.mem_ids()}
        totals |= {mem_id: ends[-1] for mem_id, ends in starts.items()}
        return MemoryAlgoResult(places, bufsizes(totals, self.padding))


def banked_memory_planning_pass(
    target: TargetMemoryMap,
    alignment: int = 16,
    allow_overlapping_allocations: bool = True,
    **kwargs: Any,
) -> MemoryPlanningPass:
    """A `MemoryPlanningPass`, whose other options are `kwargs`, that plans for `target`.

    A subclass of MemoryPlanningPass that gives specs a `mem_id` itself takes
    `MemoryPlanningAlgorithmSuite([BankedGreedy(target)])` as its algorithm.
    """
    if kwargs.get("share_mutable_buffers"):
        raise ValueError(
            "banked_memory_planning_pass: share_mutable_buffers needs arena 2 for itself, which "
            "may be a bank; share no buffers, or plan without banks"
        )
    planner = BankedGreedy(target, allow_overlapping_allocations)
    suite = MemoryPlanningAlgorithmSuite([planner])
    return MemoryPlanningPass(suite, alignment=alignment, **kwargs)


def planned_mem_ids(graph_module: GraphModule) -> list[int]:
    """The arena of each tensor that was planned in the graph, not counting those of sub-graphs."""
    specs = {
        id(spec): spec for node in graph_module.graph.nodes for spec in get_node_tensor_specs(node)
    }
    return [s.mem_id for s in specs.values() if not s.const and s.mem_id is not None]


def format_placement_report(
    target: TargetMemoryMap, bufsizes: Sequence[int], mem_ids: Iterable[int] = ()
) -> str:
    """A table of the banks: bytes used, of how many, and the number of tensors.

    bufsizes  of the arenas, as in `graph_module.meta["non_const_buffer_sizes"]`
    mem_ids   arenas of the tensors, from `planned_mem_ids`
    """
    mem_ids = list(mem_ids)
    lines = [f"{'bank':<12}{'arena':>7}{'used':>12}{'size':>12}{'full':>8}{'tensors':>9}"]
    for bank in target.banks:
        used = bufsizes[bank.mem_id] if bank.mem_id < len(bufsizes) else 0
        lines.append(
            f"{bank.name:<12}{bank.mem_id:>7}{used:>12}{bank.size:>12}{used / bank.size:>8.1%}"
            f"{mem_ids.count(bank.mem_id):>9}"
        )
    return "\n".join(lines)
