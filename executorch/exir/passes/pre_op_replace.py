"""The passes between decomposition and edge operators, in order."""

from __future__ import annotations

from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.passes.fold_redundant_dequantize_quantize_pass import (
    FoldRedundantDequantizeQuantizePass,
)
from executorch.exir.passes.infer_view_extent import InferViewExtent
from executorch.exir.passes.normalize_transpose_pass import NormalizeTransposePass
from executorch.exir.passes.prune_empty_tensors_pass import PruneEmptyTensorsPass
from executorch.exir.passes.remove_mixed_type_operators import RemoveMixedTypeOperators
from executorch.exir.passes.remove_non_core_aten_op_graph_asserts_pass import (
    RemoveNonCoreAtenOpGraphAssertsPass,
)
from executorch.exir.passes.remove_noop_pass import RemoveNoopPass
from executorch.exir.passes.remove_to_copy_pass import RemoveToCopyPass
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import (
    ReplaceBrokenOpsWithFunctionalOpsPass,
)
from executorch.exir.passes.replace_sym_size_op_pass import ReplaceSymSizeOpPass
from executorch.exir.passes.scalar_to_tensor_pass import ScalarToTensorPass
from executorch.exir.passes.sym_to_tensor_pass import SymToTensorPass

PRE_OP_REPLACE: tuple[type[GraphEdit], ...] = (
    RemoveNonCoreAtenOpGraphAssertsPass,
    ReplaceSymSizeOpPass,
    NormalizeTransposePass,
    ReplaceBrokenOpsWithFunctionalOpsPass,
    ScalarToTensorPass,
    SymToTensorPass,
    RemoveNoopPass,
    InferViewExtent,
    PruneEmptyTensorsPass,
    RemoveToCopyPass,
    FoldRedundantDequantizeQuantizePass,
    RemoveMixedTypeOperators,
)
