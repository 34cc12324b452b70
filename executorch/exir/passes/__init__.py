"""Passes over graphs, under their public names; each is imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

# Names of other modules that are public here as well: (module, name there).
_ELSEWHERE = {
    "EXIREdgeDialectVerifier": "executorch.exir.verification.verifier",
    "ExportPass": "executorch.exir.pass_base",
    "ExportedProgramPassBase": "executorch.exir.pass_base",
    "PassBase": "torch.fx.passes.infra.pass_base",
    "PassResult": "torch.fx.passes.infra.pass_base",
    "PassType": "executorch.exir.pass_base",
    "ExportedProgramPassManager": "executorch.exir.pass_manager",
    "dead_code_elimination_pass": "executorch.exir.passes.eliminate_dead_code",
    "insert_write_back_for_buffers_pass": (
        "executorch.exir.passes.insert_write_back_for_buffers_pass"
    ),
    "override_logger": "executorch.exir.common",
    "remove_unused_parameters_pass": "executorch.exir.passes.remove_unused_parameters_pass",
    "propagate_dynamic_shape": "executorch.exir.passes.sym_shape_eval_pass",
}

_HOME_OF = {
    "CSEPass": "cse_pass",
    "ConstPropPass": "const_prop_pass",
    "DebugHandleGeneratorPass": "debug_handle_generator_pass",
    "DebugPass": "debug_pass",
    "EdgeToBackendOpsPass": "replace_edge_with_backend_pass",
    "FoldRedundantDequantizeQuantizePass": "fold_redundant_dequantize_quantize_pass",
    "HintBasedSymShapeEvalPass": "sym_shape_eval_pass",
    "ConstraintBasedSymShapeEvalPass": "sym_shape_eval_pass",
    "LegalizePortableDimOrderPass": "legalize_portable_dim_order_pass",
    "MemoryFormatOpsPass": "memory_format_ops_pass",
    "MemoryPlanningPass": "memory_planning_pass",
    "NormalizeTransposePass": "normalize_transpose_pass",
    "OpReplacePass": "replace_aten_with_edge_pass",
    "PruneEmptyTensorsPass": "prune_empty_tensors_pass",
    "QuantFusionPass": "quant_fusion_pass",
    "RemoveMixedTypeOperators": "remove_mixed_type_operators",
    "RemoveNonCoreAtenOpGraphAssertsPass": "remove_non_core_aten_op_graph_asserts_pass",
    "RemoveNoopPass": "remove_noop_pass",
    "RemoveToCopyPass": "remove_to_copy_pass",
    "ReplaceBrokenOpsWithFunctionalOpsPass": "replace_broken_ops_with_function_ops_pass",
    "ReplaceSymSizeOpPass": "replace_sym_size_op_pass",
    "ScalarToTensorPass": "scalar_to_tensor_pass",
    "SpecPropPass": "spec_prop_pass",
    "SymToTensorPass": "sym_to_tensor_pass",
    "ToDevicePass": "to_device_pass",
    "ToOutVarPass": "to_out_var_pass",
}

__all__ = [*_HOME_OF, *_ELSEWHERE, "base_pre_op_replace_passes", "base_post_op_replace_passes"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "base_pre_op_replace_passes":
        from executorch.exir.passes.pre_op_replace import PRE_OP_REPLACE

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
