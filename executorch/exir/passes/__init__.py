"""Passes over graphs, under their public names; each is imported on first use."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from executorch._alias import AliasFinder

# Names of other modules that are public here as well: (module, name there).
_ELSEWHERE = {
    "EXIREdgeDialectVerifier": "executorch.exir.verification.verifier",
    "ExportPass": "executorch.exir.pass_base",
    "ExportedProgramPassBase": "executorch.exir.pass_base",
    "PassBase": "torch.fx.passes.infra.pass_base",
    "PassResult": "torch.fx.passes.infra.pass_base",
    "PassType": "executorch.exir.pass_base",
    "ExportedProgramPassManager": "executorch.exir.pass_manager",
    "dead_code_elimination_pass": "executorch.exir.passes.remove_dead_code",
    "insert_write_back_for_buffers_pass": (
        "executorch.exir.passes.insert_write_back_for_buffers_pass"
    ),
    "override_logger": "executorch.exir.common",
    "remove_unused_parameters_pass": "executorch.exir.passes.remove_dead_code",
    "propagate_dynamic_shape": "executorch.exir.passes.sym_shape_eval_pass",
}

_HOME_OF = {
    "CSEPass": "merge_common_subexpressions",
    "ConstPropPass": "constant_prop_pass",
    "DebugHandleGeneratorPass": "debug_handle_generator_pass",
    "DebugPass": "debug_pass",
    "EdgeToBackendOpsPass": "replace_edge_with_backend_pass",
    "FoldRedundantDequantizeQuantizePass": "patterns",
    "HintBasedSymShapeEvalPass": "sym_shape_eval_pass",
    "ConstraintBasedSymShapeEvalPass": "sym_shape_eval_pass",
    "LegalizePortableDimOrderPass": "legalize_portable_dim_order_pass",
    "MemoryFormatOpsPass": "patterns",
    "MemoryPlanningPass": "memory_planning_pass",
    "NormalizeTransposePass": "patterns",
    "OpReplacePass": "patterns",
    "PruneEmptyTensorsPass": "patterns",
    "QuantFusionPass": "quant_fusion_pass",
    "RemoveMixedTypeOperators": "patterns",
    "RemoveNonCoreAtenOpGraphAssertsPass": "patterns",
    "RemoveNoopPass": "patterns",
    "RemoveToCopyPass": "patterns",
    "ReplaceBrokenOpsWithFunctionalOpsPass": "replace_broken_ops_with_function_ops_pass",
    "ReplaceSymSizeOpPass": "patterns",
    "ScalarToTensorPass": "patterns",
    "SpecPropPass": "spec_prop_pass",
    "SymToTensorPass": "patterns",
    "ToDevicePass": "to_device_pass",
    "ToOutVarPass": "to_out_var_pass",
}

# Modules that upstream has, and the modules that hold their names here.
_MODULES = {
    "_quant_patterns_and_replacements": "quantized_ops_registry",
    "const_prop_pass": "constant_prop_pass",
    "convert_constant_dim_order_pass": "make_constants_dense",
    "cse_pass": "merge_common_subexpressions",
    "eliminate_dead_code": "remove_dead_code",
    "remove_unused_parameters_pass": "remove_dead_code",
    **dict.fromkeys(
        (
            "fold_redundant_dequantize_quantize_pass",
            "fold_redundant_qdq_pass",
            "memory_format_ops_pass",
            "normalize_transpose_pass",
            "prune_empty_tensors_pass",
            "remove_graph_asserts_pass",
            "remove_mixed_type_operators",
            "remove_non_core_aten_op_graph_asserts_pass",
            "remove_noop_pass",
            "remove_to_copy_pass",
            "replace_aten_with_edge_pass",
            "replace_sym_size_op_pass",
            "scalar_to_tensor_pass",
            "sym_to_tensor_pass",
        ),
        "patterns",
    ),
}

sys.meta_path.append(AliasFinder(__name__, _MODULES))

__all__ = [*_HOME_OF, *_ELSEWHERE, "base_pre_op_replace_passes", "base_post_op_replace_passes"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "base_pre_op_replace_passes":
        from executorch.exir.passes.patterns import PRE_OP_REPLACE

        return [make() for make in PRE_OP_REPLACE]
    if name == "base_post_op_replace_passes":
        return []
    if name in _ELSEWHERE:
        value = getattr(importlib.import_module(_ELSEWHERE[name]), name)
        globals()[name] = value  # a function, even after a module of its name was imported
        return value
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
