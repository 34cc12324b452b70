"""Weights in a layout that a program can store."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from executorch.exir.graph.graph_edit import is_channels_last, is_contiguous
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph.recompute import recompute_values


class MakeConstantsDense(Pass):
    """Make weights and constants contiguous unless they are contiguous or channels-last.

    A program stores a tensor as its bytes and one of these two orders. The user's own tensors stay.
    """

    def edit(self, view: ProgramView) -> bool:
        stale: set[Node] = set()
        program = view.program
        for node, spec in view.inputs.items() if program is not None else ():
            value = node.meta.get("val")
            if spec.kind is InputKind.USER_INPUT or not isinstance(value, torch.Tensor):
                continue
            for store in (program.state_dict, program.constants):  # type: ignore[union-attr]
                tensor: Any = store.get(spec.target or "")
                if isinstance(tensor, torch.Tensor) and not _is_dense(tensor):
                    dense = tensor.detach().contiguous()
                    if isinstance(tensor, torch.nn.Parameter):
                        dense = torch.nn.Parameter(dense, tensor.requires_grad)
                    store[spec.target or ""] = dense
                    node.meta["val"] = value.contiguous()
                    stale.add(node)
        recompute_values(view.graph_module, stale)
        return bool(stale)


def convert_constant_dim_order_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """`MakeConstantsDense` on `exported_program` itself, which is returned."""
    MakeConstantsDense()(exported_program)
    return exported_program


def _is_dense(tensor: torch.Tensor) -> bool:
    return is_contiguous(tensor) or is_channels_last(tensor)
