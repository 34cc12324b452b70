from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule

from executorch.exir.dialects.edge._ops import edge_op
from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.torch_internals import OpOverload, rename_after_target

_aten = torch.ops.aten
# Symbolic sizes, assertions and scalars: they stay plain torch operators in every dialect.
UNWRAPPED = {
    _aten.sym_size.int,
    _aten.sym_stride.int,
    _aten.sym_numel.default,
    _aten.sym_storage_offset.default,
    _aten._local_scalar_dense.default,
    _aten.sym_constrain_range.default,
    _aten.sym_constrain_range_for_size.default,
    _aten._assert_scalar.default,
    _aten._assert_async.msg,
    _aten.scalar_tensor.default,
    operator.getitem,
}


def is_unwrapped(target: Any) -> bool:
    """Whether the edge dialect has `target` as it is."""
    return not isinstance(target, OpOverload) or target in UNWRAPPED


class OpReplacePass(GraphEdit):
    """Turn torch operators into edge operators, and name their nodes after them.

    Before    %add = torch.ops.aten.add.Tensor(...)
    After     %aten_add_tensor = exir_ops.edge.aten.add.Tensor(...)
    """

    def edit(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        modified = False
        for node in graph.nodes:
            if node.op != "call_function" or is_unwrapped(node.target):
                continue
            node.target = edge_op(node.target)
            rename_after_target(node)
            modified = True
        return modified
