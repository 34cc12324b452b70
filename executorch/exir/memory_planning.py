"""Where tensors lie in the arenas of a method: lifetimes, sub-graphs and devices around the
algorithms of exir/memory_algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch.export.graph_signature import ExportGraphSignature, InputKind, TensorArgument
from torch.fx import GraphModule, Node

from executorch.exir import memory
from executorch.exir.device_arenas import has_devices, place_by_device
from executorch.exir.error import InternalError
from executorch.exir.graph.operator_kind import is_inplace, overload_of
from executorch.exir.memory_algorithms import (
    MemoryAlgoResult,
    SpecAllocResult,
    by_arena,
    greedy,
    naive,
    smallest,
)
from executorch.exir.share_storage import (
    extend_lifetimes_of_bases as _extend_storage_base_lifetimes,
)
from executorch.exir.share_storage import owners_and_nested, place_shared, share_storage, unshare
from executorch.exir.sub_graph_regions import plan_sub_graphs, resolve_regions
from executorch.exir.tensor import TensorSpec
from executorch.exir.tensor_lifetimes import (
    collect_specs_from_nodes,
    filter_nodes,
    get_cond_nodes,
    get_graph_input_tensors,
    get_graph_output_tensors,
    get_input_specs,
    get_map_nodes,
    get_node_tensor_specs,
    get_return_specs,
    get_scan_nodes,
    get_while_nodes,
    storage_of,
    update_all_tensors_lifetime,
    update_tensor_lifetime,
)

__all__ = [
    "AllocationSpec",
    "MemoryAlgoResult",
    "MemoryPlanningAlgorithmSuite",
    "SharedObject",
    "SpecAllocResult",
    "Verifier",
    "apply_algo",
    "collect_specs_from_nodes",
    "filter_nodes",
    "get_cond_nodes",
    "get_graph_input_tensors",
    "get_graph_output_tensors",
    "get_input_specs",
    "get_map_nodes",
    "get_node_tensor_specs",
    "get_return_specs",
    "get_scan_nodes",
    "get_while_nodes",
    "greedy",
    "insert_calls_to_free",
    "naive",
    "pick_shared_obj",
    "smallest",
    "update_all_tensors_lifetime",
    "update_tensor_lifetime",
]


@dataclass
class AllocationSpec:
    """A spec `offset` bytes into a shared object."""

    offset: int
    spec: TensorSpec


@dataclass
class SharedObject:
    """A piece of an arena that several specs use, at different times or side by side."""

    idx: int
    offset: int
    size: int
    first_used_index: int
    last_used_index: int
    allocations: list[AllocationSpec] = field(default_factory=list)


def pick_shared_obj(
    shared_objects: list[SharedObject],
    spec: TensorSpec,
    allow_overlapping_allocations: bool = True,
) -> SharedObject:
    """The object `greedy` would put `spec` into, which is then in it; a new one is appended."""
    for obj in shared_objects:
        if not any(Verifier.lifetime_overlap(a.spec, spec) for a in obj.allocations):
            return _put(obj, spec, 0)
    for obj in shared_objects if allow_overlapping_allocations else ():
        met = [a for a in obj.allocations if Verifier.lifetime_overlap(a.spec, spec)]
        end = max(a.offset + a.spec.allocated_memory for a in met)
        if end > 0 and end + spec.allocated_memory <= obj.size:
            return _put(obj, spec, end)
    first, last = spec.lifetime
    shared_objects.append(SharedObject(len(shared_objects), -1, spec.allocated_memory, first, last))
    return _put(shared_objects[-1], spec, 0)


def _put(obj: SharedObject, spec: TensorSpec, offset: int) -> SharedObject:
    obj.allocations.append(AllocationSpec(offset, spec))
    obj.first_used_index = min(obj.first_used_index, spec.lifetime[0])
    obj.last_used_index = max(obj.last_used_index, spec.lifetime[1])
    return obj


class MemoryPlanningAlgorithmSuite:
    """Runs several algorithms and keeps the smallest result."""

    def __init__(self, algo_list: list[Callable[..., Any]] | None = None) -> None:
        self.algo_list = [smallest] if algo_list is None else list(algo_list)
        if not self.algo_list:
            raise ValueError("MemoryPlanningAlgorithmSuite: the list of algorithms is empty")

    def __call__(
        self,
        alignment: int,
        specs: Iterable[TensorSpec],
        graph_module: GraphModule,
        graph_signature: ExportGraphSignature | None,
        extra_padding: int,
    ) -> list[int]:
        specs = list(specs)
        results: list[MemoryAlgoResult] = []
        for algo in self.algo_list:
            result = algo(alignment, specs, graph_module, graph_signature, extra_padding)
            results.append(_as_result(result, specs))
        lengths = {len(r.bufsizes) for r in results}
        if len(lengths) > 1:
            raise InternalError(f"the algorithms plan different numbers of arenas: {lengths}")
        best = min(results, key=lambda r: sum(r.bufsizes))
        return _settle(best)


def _settle(result: MemoryAlgoResult) -> list[int]:
    """Write the places into the specs; returns the arena sizes."""
    for spec, place in result.spec_dict.items():
        spec.mem_id = place.mem_id
        spec.mem_obj_id = place.mem_obj_id
        spec.mem_offset = place.mem_offset
    return result.bufsizes


def _as_result(result: Any, specs: list[TensorSpec]) -> MemoryAlgoResult:
    """Algorithms of earlier releases write into the specs and return the sizes only."""
    if isinstance(result, MemoryAlgoResult):
        return result
    places = {
        s: SpecAllocResult(s.mem_id, s.mem_obj_id or 0, s.mem_offset)
        for s in specs
        if s.mem_id is not None and s.mem_offset is not None
    }
    return MemoryAlgoResult(places, list(result))


class Verifier:
    """Checks a planned graph."""

    def __init__(
        self,
        graph_module: GraphModule,
        alloc_graph_input: bool,
        alloc_graph_output: bool,
        alloc_mutable_buffers: bool,
        graph_signature: ExportGraphSignature | None = None,
    ) -> None:
        self.graph_module = graph_module
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers
        self.graph_signature = graph_signature

    @classmethod
    def has_overlap(cls, lhs_ivl: list[int], rhs_ivl: list[int]) -> bool:
        """Whether two intervals, both ends inclusive, have a point in common."""
        return lhs_ivl[0] <= rhs_ivl[1] and rhs_ivl[0] <= lhs_ivl[1]

    @classmethod
    def lifetime_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        return cls.has_overlap(lhs_spec.lifetime, rhs_spec.lifetime)

    @classmethod
    def mem_obj_id_match(
        cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec, accept_both_none: bool = True
    ) -> bool:
        if lhs_spec.mem_obj_id is None and rhs_spec.mem_obj_id is None:
            return accept_both_none
        same_arena = lhs_spec.mem_id == rhs_spec.mem_id
        return same_arena and lhs_spec.mem_obj_id == rhs_spec.mem_obj_id

    @classmethod
    def storage_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Whether two planned specs have a byte in common."""
        if lhs_spec.mem_id != rhs_spec.mem_id or 0 in (lhs_spec.nbytes(), rhs_spec.nbytes()):
            return False
        lhs, rhs = lhs_spec.mem_offset, rhs_spec.mem_offset
        if lhs is None or rhs is None:
            return False
        return cls.has_overlap(
            [lhs, lhs + lhs_spec.allocated_memory - 1], [rhs, rhs + rhs_spec.allocated_memory - 1]
        )

    def _planned(self) -> list[TensorSpec]:
        return list(
            collect_specs_from_nodes(
                self.graph_module.graph.nodes,
                self.graph_signature,
                ignore_graph_input=not self.alloc_graph_input,
                ignore_graph_output=not self.alloc_graph_output,
                ignore_mutable_buffers=not self.alloc_mutable_buffers,
            )
        )

    def verify_storage_reuse(self, allow_lifetime_and_storage_overlap: bool = False) -> int:
        """The number of pairs that share memory at different times; InternalError for a pair that
        shares it at the same time, unless that is allowed."""
        specs = owners_and_nested(self._planned())[0]
        if not allow_lifetime_and_storage_overlap:
            check_no_conflict(specs)
        return sum(self.storage_overlap(a, b) for i, a in enumerate(specs) for b in specs[i + 1 :])

    def verify_graph_input_output(self) -> None:
        """InternalError unless inputs, outputs and mutable buffers have memory as asked for."""
        nodes = self.graph_module.graph.nodes
        inputs = get_graph_input_tensors(nodes, self.graph_signature)
        outputs = get_graph_output_tensors(nodes, self.graph_signature)
        for spec in inputs | outputs:
            if spec.const or spec.is_dynamic_unbound_tensor:
                continue
            asked = (self.alloc_graph_input or spec not in inputs) and (
                self.alloc_graph_output or spec not in outputs
            )
            if not asked and spec.mem_offset is not None:
                raise InternalError(f"memory is planned that the caller provides: {spec.debug()}")
            if asked and spec in set(self._planned()) and spec.mem_offset is None:
                raise InternalError(f"no memory is planned: {spec.debug()}")


def _do_user_inputs_exist(graph_signature: ExportGraphSignature) -> bool:
    """Whether a caller gives any tensor."""
    return any(
        s.kind is InputKind.USER_INPUT and isinstance(s.arg, TensorArgument)
        for s in graph_signature.input_specs
    )


def _is_inplace_node(node: Node) -> bool:
    """Whether its result is an operand that it writes into."""
    op = overload_of(node.target) if node.op == "call_function" else None
    return op is not None and is_inplace(op)


def check_no_conflict(specs: Iterable[TensorSpec]) -> None:
    """InternalError if two specs that are alive together overlap in memory."""
    from executorch.exir import _native

    for mem_id, group in by_arena(specs).items():
        placed = [s for s in owners_and_nested(group)[0] if s.mem_offset is not None]
        blocks = [(s.allocated_memory, *s.lifetime) for s in placed]
        found = _native.find_conflict(blocks, [s.mem_offset or 0 for s in placed])
        if found is not None:
            one, other = placed[found[0]], placed[found[1]]
            raise InternalError(
                f"memory planning: two tensors of arena {mem_id} are alive together and overlap:\n"
                f"  {one.debug()}\n  {other.debug()}"
            )


def insert_calls_to_free(graph_module: GraphModule, allspecs: set[TensorSpec]) -> None:
    """Add `memory.free` behind the last use of tensors whose size no bound is known of."""
    nodes = list(graph_module.graph.nodes)
    kept = get_input_specs(graph_module) | get_return_specs(graph_module)
    for spec in allspecs:
        if spec.is_dynamic_unbound_tensor and storage_of(spec) not in kept:
            last: Node = nodes[spec.lifetime[1]]
            with graph_module.graph.inserting_after(last):
                graph_module.graph.call_function(memory.free, (spec,))  # type: ignore[arg-type]


def apply_algo(
    algo: Callable[..., Any],
    graph_module: GraphModule,
    alignment: int,
    graph_signature: ExportGraphSignature | None = None,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    enable_non_cpu_memory_planning: bool = False,
    reuse_storage: bool = False,
) -> list[int]:
    """Plan a graph and the sub-graphs of its control flow; returns the arena sizes.

    enable_non_cpu_memory_planning  specs of every device get arenas of their own, the host's first;
                   `graph_module.meta["non_const_buffer_device"]` lists the others.
                   NotImplementedError for specs that come with a memory id
    reuse_storage  let elementwise operators of the graph itself write where an operand lies, if
                   that makes the arenas smaller
    A sub-graph takes a region of its parent's arenas that is alive while it runs and, for branches
    of cond, whose results are handed on where they lie, until the last use of a result.
    """
    specs = update_all_tensors_lifetime(graph_module, graph_signature)
    regions = plan_sub_graphs(graph_module, partial(_plan_sub_graph, algo, alignment))
    planned = list(
        collect_specs_from_nodes(
            graph_module.graph.nodes,
            graph_signature,
            ignore_graph_input=not alloc_graph_input,
            ignore_graph_output=not alloc_graph_output,
            ignore_mutable_buffers=not alloc_mutable_buffers,
        )
    )
    for spec in planned:
        spec.realign(alignment)
    _extend_storage_base_lifetimes(planned)
    graph_module.input_mem_buffer_sizes = []  # type: ignore[assignment]
    padding = _xnnpack_padding(graph_module)

    def place(chosen: list[TensorSpec], with_regions: list[Any] = regions) -> list[int]:
        result = algo(alignment, chosen + with_regions, graph_module, graph_signature, padding)
        if isinstance(result, MemoryAlgoResult):
            return _settle(result)
        if not isinstance(result, Iterable):
            raise TypeError(
                f"memory planning algorithm {algo}: expected a MemoryAlgoResult or the sizes of "
                f"the arenas, found {result!r:.80}"
            )
        return list(result)

    graph_module.meta.pop("non_const_buffer_device", None)
    if enable_non_cpu_memory_planning and has_devices(planned):
        sizes, devices = place_by_device(planned, regions, place)
        graph_module.meta["non_const_buffer_device"] = devices
    elif reuse_storage:
        sizes = _place_sharing(graph_module, graph_signature, planned, place)
    else:
        sizes = place(planned)
    resolve_regions(regions)
    place_shared(graph_module)
    graph_module.meta["regions"] = regions
    insert_calls_to_free(graph_module, specs)
    return sizes


def _place_sharing(
    graph_module: GraphModule,
    graph_signature: ExportGraphSignature | None,
    planned: list[TensorSpec],
    place: Callable[[list[TensorSpec]], list[int]],
) -> list[int]:
    """The smaller of two placements: each result in memory of its own, or some where operands
    lie."""
    sizes = place(planned)
    shared = share_storage(graph_module, planned)
    if not shared:
        return sizes
    smaller = place([s for s in planned if s.storage_base is None])
    if sum(smaller) < sum(sizes):
        return smaller
    unshare(shared)
    update_all_tensors_lifetime(graph_module, graph_signature)
    return place(planned)


def _plan_sub_graph(
    algo: Callable[..., Any], alignment: int, sub: GraphModule, with_inputs: bool
) -> tuple[list[int], list[TensorSpec]]:
    sizes = apply_algo(algo, sub, alignment, alloc_graph_input=with_inputs)
    members = list(collect_specs_from_nodes(sub.graph.nodes, ignore_graph_input=not with_inputs))
    check_no_conflict(members)
    return sizes, members


# XNNPACK's kernels read past the end of their operands.
_XNNPACK_PADDING = 64


def _xnnpack_padding(graph_module: GraphModule) -> int:
    for node in graph_module.graph.find_nodes(op="get_attr"):
        backend = getattr(getattr(graph_module, str(node.target), None), "backend_id", "")
        if "xnnpack" in str(backend).lower():
            return _XNNPACK_PADDING
    return 0
