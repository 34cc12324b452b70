"""Options of export and of the way from the edge dialect to a program.

Importing this module is cheap: default passes are made when a configuration is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from executorch.exir.dynamic_shape import DynamicMemoryPlanningMode


@dataclass
class ExirDynamoConfig:
    """Options of the former graph capture; accepted, without effect on torch.export."""

    allow_rnn: bool = True
    verbose: bool = True
    assume_static_by_default: bool = False


@dataclass
class CaptureConfig:
    """Options of `exir.capture`, the predecessor of torch.export."""

    pt2_mode: bool = True
    enable_functionalization: bool = True
    enable_dynamic_shape: bool = False
    enable_aot: bool = False
    _dynamo_config: ExirDynamoConfig = field(default_factory=ExirDynamoConfig)
    _unlift: bool = False
    _use_old_decomp_table: bool = False


@dataclass
class EdgeCompileConfig:
    """Options of the edge dialect.

    _check_ir_validity            verify the graphs
    _skip_dim_order               keep memory_format arguments instead of dim orders
    _core_aten_ops_exception_list operators allowed although not in core ATen, or without a kernel
                                  here: the application registers one
    preserve_ops                  operators that are not decomposed
    _use_edge_ops and _skip_type_promotion are options of earlier releases, accepted without effect.
    """

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: list[Any] = field(default_factory=list)
    preserve_ops: list[Any] = field(default_factory=list)
    _use_edge_ops: bool = True
    _skip_type_promotion: bool = False


def _memory_planning_pass() -> Any:
    from executorch.exir.passes.memory_planning_pass import MemoryPlanningPass

    return MemoryPlanningPass()


def _to_out_var_pass() -> Any:
    from executorch.exir.passes.to_out_var_pass import ToOutVarPass

    return ToOutVarPass()


def _sym_shape_eval_pass() -> Any:
    from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass

    return ConstraintBasedSymShapeEvalPass()


def _propagate_device_config() -> Any:
    from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig

    return PropagateDeviceConfig()


@dataclass
class ExecutorchBackendConfig:
    """Options of `to_executorch`.

    passes                    run first, on each method's edge graph
    memory_planning_pass      a pass, or a dict of them by method name, where a method without an
                              entry has the default; likewise sym_shape_eval_pass
    emit_stacktrace           store the Python lines of every operator call in the program
    emit_debug_identity       store operator, module path, file and line of every instruction, for
                              runtime errors and profiles; other runtimes ignore it
    extract_delegate_segments keep delegate blobs in segments (else inline in the flatbuffer)
    segment_alignment         bytes; likewise constant_tensor_alignment and delegate_alignment;
                              None is 16, and 64 for constants of at least 1024 bytes
    remove_view_copy          turn view_copy into aliases of planned memory
    external_constants        weights go to .ptd files: True, or a function from a node to the name
                              of its file, or None for what stays in the program
    external_mutable_weights  weights with gradients go to a .ptd file
    emit_mutable_buffer_names store the names of mutable buffers
    run_reinplace_pass        write in place where the old value is not used again
    reinplace_extra_ops       edge operators that may write in place beside index_put
    enable_non_cpu_memory_planning  arenas in the memory of devices whose delegates the program
                              calls, and copies around them; propagate_device_config, also a dict
                              from method name, says which copies the caller does without
    dynamic_memory_planning_mode  UPPER_BOUND; others are refused
    emit_linear               products with constant weights of 1 MiB and more are aten::linear.out;
                              False keeps aten::mm.out and aten::addmm.out, for upstream's runtime
                              built with portable kernels alone: linear is one of its optimized
                              kernels, which its wheel and mobile packages have
    extract_segments and extract_constant_segment are options of earlier releases, accepted without
    effect.
    """

    passes: list[Any] = field(default_factory=list)
    memory_planning_pass: Any = field(default_factory=_memory_planning_pass)
    propagate_device_config: Any = field(default_factory=_propagate_device_config)
    to_out_var_pass: Any = field(default_factory=_to_out_var_pass)
    dynamic_memory_planning_mode: DynamicMemoryPlanningMode = DynamicMemoryPlanningMode.UPPER_BOUND
    emit_stacktrace: bool = False
    emit_debug_identity: bool = True
    extract_delegate_segments: bool = True
    segment_alignment: int = 128
    constant_tensor_alignment: int | None = None
    delegate_alignment: int | None = None
    sym_shape_eval_pass: Any = field(default_factory=_sym_shape_eval_pass)
    remove_view_copy: bool = True
    external_constants: bool | Callable[[Any], str | None] = False
    external_mutable_weights: bool = False
    emit_mutable_buffer_names: bool = False
    do_quant_fusion_and_const_prop: bool = False
    run_reinplace_pass: bool = False
    enable_non_cpu_memory_planning: bool = True
    reinplace_extra_ops: frozenset[Any] | None = None
    extract_segments: bool = True
    extract_constant_segment: bool = True
    emit_linear: bool = True
