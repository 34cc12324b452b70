"""From edge programs to a .pte file, and the manager of the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from torch.export import ExportedProgram

from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._flat_tensor import FlatTensorSerializer
from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput
from executorch.exir._serialize._serialize import serialize_for_executorch
from executorch.exir.capture._config import EdgeCompileConfig, ExecutorchBackendConfig
from executorch.exir.dynamic_shape import DynamicMemoryPlanningMode
from executorch.exir.emit import EmitterOutput, emit_program
from executorch.exir.emit import _debug_identity as debug_identity
from executorch.exir.emit._operator_check import (
    check_float8,
    check_operators,
    known_operators,
    with_out_variants,
)
from executorch.exir.graph.pass_driver import Pass, run_passes
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.lowered_backend_module import named_data_of
from executorch.exir.pass_manager import UserPass, as_pass, flat_passes
from executorch.exir.passes.addmm_to_linear import AddmmToLinear
from executorch.exir.passes.constant_prop_pass import ConstPropPass
from executorch.exir.passes.external_constants_pass import TagExternalConstants, TagTrainedWeights
from executorch.exir.passes.fold_constants import FoldConstants
from executorch.exir.passes.fuse_batch_norm_into_conv import FuseBatchNormIntoConv
from executorch.exir.passes.insert_write_back_for_buffers_pass import InsertWriteBackForBuffers
from executorch.exir.passes.legalize_portable_dim_order_pass import LegalizePortableDimOrderPass
from executorch.exir.passes.merge_common_subexpressions import MergeCommonSubexpressions
from executorch.exir.passes.normalize_view_copy_base_pass import NormalizeViewCopyBasePass
from executorch.exir.passes.patterns import RemoveGraphAssertsPass
from executorch.exir.passes.propagate_device_pass import PropagateDevicePass
from executorch.exir.passes.quant_fusion_pass import QuantFusionPass
from executorch.exir.passes.reinplace import DEFAULT_INPLACEABLE_OPS, Reinplace, UndoReinplace
from executorch.exir.passes.remove_dead_code import RemoveDeadCode
from executorch.exir.passes.remove_redundant_copies import RemoveRedundantCopies
from executorch.exir.passes.replace_edge_with_backend_pass import EdgeToBackendOpsPass
from executorch.exir.passes.replace_view_copy_with_view_pass import ReplaceViewCopyWithViewPass
from executorch.exir.passes.restore_in_place_calls import RestoreInPlaceCalls
from executorch.exir.passes.separate_loop_results import SeparateLoopResults
from executorch.exir.passes.spec_prop_pass import SpecPropPass
from executorch.exir.passes.weights_to_outputs_pass import WeightsToOutputs
from executorch.exir.program._options import check_backend_options, check_named_data
from executorch.exir.program._shared_state import shared_buffers
from executorch.exir.schema import Program


def to_executorch(
    edge_programs: dict[str, ExportedProgram],
    constant_methods: dict[str, Any] | None,
    config: ExecutorchBackendConfig,
    named_data: Mapping[str, bytes] = MappingProxyType({}),
    of_application: Set[Any] = frozenset(),
) -> ExecutorchProgramManager:
    """Plan and emit edge programs; their graphs are edited in place.

    of_application  operators that the application has kernels for, beside the runtime's own

    ValueError where a backend has other data under a name of `named_data`, ExportError where the
    program would not compute what the model does.
    """
    check_backend_options(config)
    check_named_data(named_data)
    _refuse_without_effect(config)
    views = {name: ProgramView(p, Dialect.EDGE) for name, p in sorted(edge_programs.items())}
    for _, methods in _planned_together(edge_programs, config):
        shared = shared_buffers({name: edge_programs[name] for name in methods})
        for name in methods:
            views[name].changed_elsewhere = shared
    if not (config.external_constants or config.external_mutable_weights):
        # With external files weights keep the model's names; fused and folded ones get new names.
        folding: list[Pass] = [FuseBatchNormIntoConv(), FoldConstants()]
        if config.emit_linear:
            folding.append(AddmmToLinear())
        run_passes(list(views.values()), folding)
    known = known_operators()
    if known is not None:
        known |= with_out_variants(of_application)
    for name, view in views.items():
        run_passes([view], _passes(name, view, config, known))
    planned = {name: view.program for name, view in views.items() if view.program is not None}
    check_operators(planned, known)
    check_float8(planned)
    for planning, _ in _planned_together(planned, config):
        planning.run_multimethod()
    store = NamedDataStore()
    if (delegated := named_data_of(planned.values())) is not None:
        store.merge_named_data_store(delegated)
    for key, data in named_data.items():
        store.add_named_data(key, data)
    stored = store.get_named_data_store_output() if delegated or named_data else None
    return ExecutorchProgramManager(planned, constant_methods, config, stored)


def _refuse_without_effect(config: ExecutorchBackendConfig) -> None:
    """ValueError for options that are not implemented: memory for sizes without bounds."""
    mode = config.dynamic_memory_planning_mode
    if mode is not DynamicMemoryPlanningMode.UPPER_BOUND:
        raise ValueError(
            f"dynamic_memory_planning_mode: memory is planned for upper bounds, not {mode}; give "
            "every dynamic dimension a max in torch.export.Dim"
        )


def _planned_together(
    methods: Iterable[str], config: ExecutorchBackendConfig
) -> list[tuple[Any, list[str]]]:
    """Each pass that plans memory which methods share, with these methods."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for name in sorted(methods):
        planning = _for_method(config, "memory_planning_pass", name)
        if getattr(planning, "share_mutable_buffers", False):
            found.setdefault(id(planning), (planning, []))[1].append(name)
    return list(found.values())


def _for_method(config: ExecutorchBackendConfig, option: str, name: str) -> Any:
    """The value of `option` for method `name`: of a dict by method name its entry, or the default
    of that option for a method without one."""
    value = getattr(config, option)
    if not isinstance(value, dict):
        return value
    return value[name] if name in value else getattr(ExecutorchBackendConfig(), option)


def _passes(
    name: str, view: ProgramView, config: ExecutorchBackendConfig, known: Set[str] | None
) -> list[Pass]:
    """The passes of one method, in order; the last one plans its memory.

    known  names of the operators that there are kernels for; None where nobody knows
    """
    passes: list[Pass] = []
    if config.do_quant_fusion_and_const_prop:
        passes += [QuantFusionPass(), ConstPropPass()]
    passes += [WeightsToOutputs(), RestoreInPlaceCalls()]
    # Writing a few entries of a buffer must not copy it.
    if config.run_reinplace_pass or config.reinplace_extra_ops or view.changing_buffers:
        extra = config.reinplace_extra_ops or frozenset()
        passes.append(Reinplace(DEFAULT_INPLACEABLE_OPS | extra))
    if known is not None:
        passes.append(UndoReinplace(known))
    passes.append(InsertWriteBackForBuffers())
    passes += map(UserPass, flat_passes(config.passes))
    passes += map(as_pass, pre_memory_planning_passes(config, name))
    if config.external_constants:
        choose = config.external_constants if callable(config.external_constants) else None
        passes.append(TagExternalConstants(choose))
    if config.external_mutable_weights:
        passes.append(TagTrainedWeights())
    planning = _for_method(config, "memory_planning_pass", name)
    if hasattr(planning, "enable_non_cpu_memory_planning"):
        planning.enable_non_cpu_memory_planning = config.enable_non_cpu_memory_planning
    return [*passes, planning if isinstance(planning, Pass) else _UserPlanning(planning)]


class _UserPlanning(Pass):
    """A user's own way to plan memory: `run(graph_module, graph_signature)`, or a call on the graph
    module alone."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def edit(self, view: ProgramView) -> bool:
        if hasattr(self.given, "run"):  # it needs to know which inputs are buffers
            result = self.given.run(view.graph_module, view.signature)
        else:
            result = self.given(view.graph_module)
        if result is not None:
            view.graph_module = result.graph_module
        return True


def pre_memory_planning_passes(
    config: ExecutorchBackendConfig,
    name: str | None = None,
    edge_compile_config: EdgeCompileConfig | None = None,
) -> list[Any]:
    """The passes between the user's and memory planning, in order."""
    device_config = config.propagate_device_config
    if isinstance(device_config, dict):
        device_config = device_config.get(name)
    with_devices = config.enable_non_cpu_memory_planning
    skip_dim_order = edge_compile_config is not None and edge_compile_config._skip_dim_order
    planning = _for_method(config, "memory_planning_pass", name or "forward")
    planned_outputs = bool(getattr(planning, "alloc_graph_output", False))
    views = [NormalizeViewCopyBasePass(), ReplaceViewCopyWithViewPass(planned_outputs)]
    return [
        *([] if skip_dim_order else [LegalizePortableDimOrderPass()]),
        SeparateLoopResults(),
        SpecPropPass(),
        PropagateDevicePass(device_config, with_devices, name or "forward"),
        EdgeToBackendOpsPass(),
        RemoveGraphAssertsPass(),
        RemoveRedundantCopies(),
        MergeCommonSubexpressions(),
        RemoveDeadCode(),
        *(views if config.remove_view_copy else []),
        _for_method(config, "sym_shape_eval_pass", name or "forward"),
        config.to_out_var_pass,
    ]


def edge_to_executorch_passes(
    config: ExecutorchBackendConfig,
    name: str | None = None,
    edge_compile_config: EdgeCompileConfig | None = None,
) -> list[Any]:
    """All passes from the edge dialect to memory planning, the user's first."""
    return [
        *config.passes,
        *pre_memory_planning_passes(config, name, edge_compile_config),
        _for_method(config, "memory_planning_pass", name or "forward"),
    ]


class ExecutorchProgramManager:
    """A finished program: its methods' planned graphs, its schema Program and its bytes."""

    def __init__(
        self,
        execution_programs: dict[str, ExportedProgram],
        config_methods: dict[str, Any] | None = None,
        backend_config: ExecutorchBackendConfig | None = None,
        named_data: NamedDataStoreOutput | None = None,
    ) -> None:
        config = backend_config or ExecutorchBackendConfig()
        self._execution_programs = execution_programs
        self._config_methods = config_methods
        self._named_data = named_data
        self._etrecord: Any = None
        self._emitter_output: EmitterOutput = emit_program(
            execution_programs,
            config.emit_stacktrace,
            config_methods,
            config.emit_mutable_buffer_names,
        )
        stored = named_data
        if config.emit_debug_identity:
            stored = _with_identity(named_data, self._emitter_output)
        self._pte_data: Cord
        self._pte_data, self._tensor_data = serialize_for_executorch(
            self._emitter_output, config, FlatTensorSerializer(), stored
        )
        self._buffer: bytes | None = None

    @property
    def methods(self) -> set[str]:
        """Names of the methods that run a graph."""
        return set(self._execution_programs)

    @property
    def config_methods(self) -> set[str]:
        """Names of the methods that return a constant."""
        return set(self._config_methods or ())

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        if method_name not in self._execution_programs:
            found = sorted(self._execution_programs)
            raise KeyError(f"no method {method_name!r}; there are {found}")
        return self._execution_programs[method_name]

    @property
    def buffer(self) -> bytes:
        """The .pte file as one bytes object, made on first use. `save` and `write_to_file` need no
        such copy."""
        if self._buffer is None:
            self._buffer = bytes(self._pte_data)
        return self._buffer

    def write_to_file(self, open_file: Any) -> None:
        """Write the .pte file to a binary file object, weights straight from their tensors."""
        if not hasattr(open_file, "write"):
            raise TypeError(
                f"write_to_file: expected a binary file object, found {open_file!r:.80}; save "
                "writes to a path"
            )
        self._pte_data.write_to_file(open_file)

    def save(self, path: Any, progress: Callable[[int, int], None] | None = None) -> None:
        """Write the .pte file to `path`, which then holds its old content or all of the new.

        `progress(done, total)`, in bytes, is called every 64 MiB. OSError names the path.
        ValueError for a name that does not end in .pte.
        """
        if not str(path).endswith(".pte"):
            raise ValueError(f"save: the path must end in .pte, found {str(path)!r}")
        self._pte_data.save(path, progress)

    def write_tensor_data_to_file(self, outdir: Any) -> None:
        """Write the external data files (.ptd) into a folder."""
        for name, cord in self._tensor_data.items():
            file = name if name.endswith(".ptd") else f"{name}.ptd"
            cord.save(Path(outdir) / file)

    @property
    def executorch_program(self) -> Program:
        """The program as schema dataclasses; constants and blobs are not moved into segments."""
        return self._emitter_output.program

    def dump_executorch_program(self, verbose: bool = False, out: TextIO | None = None) -> None:
        """Print the program: with `verbose` all of it, else its instructions."""
        from executorch.exir.print_program import pretty_print, print_program

        (pretty_print if verbose else print_program)(
            self._emitter_output.program, out=out or sys.stdout
        )

    @property
    def debug_handle_map(self) -> dict[str, dict[int, Any]]:
        return self._emitter_output.debug_handle_map

    @property
    def delegate_map(self) -> dict[str, dict[int, Any]]:
        return self._emitter_output.method_to_delegate_debug_id_map

    @property
    def instruction_id_to_num_outs_map(self) -> dict[str, dict[int, int]]:
        return self._emitter_output.instruction_id_to_num_outs_map

    def get_etrecord(self) -> Any:
        """The executorch.devtools.ETRecord of this program."""
        if self._etrecord is None:
            raise RuntimeError(
                "ETRecord was not generated: pass generate_etrecord=True to to_edge or "
                "to_edge_transform_and_lower"
            )
        return self._etrecord


def _with_identity(
    named_data: NamedDataStoreOutput | None, output: EmitterOutput
) -> NamedDataStoreOutput:
    store = NamedDataStore()
    if named_data is not None:
        store.merge_named_data_store(named_data)
    store.add_named_data(debug_identity.KEY, output.debug_identity.to_bytes())
    return store.get_named_data_store_output()
