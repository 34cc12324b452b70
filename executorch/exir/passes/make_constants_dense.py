"""Weights in a layout that a program can store."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from executorch.exir.passes.memory_format_ops_pass import is_channels_last, is_contiguous
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import recompute_values


def make_constants_dense(program: ExportedProgram) -> bool:
    """Make weights and constants contiguous unless they are contiguous or channels-last, in place.

    A program stores a tensor as its bytes and one of these two orders. The user's own tensors stay.
    """
    stale: set[Node] = set()
    specs = {s.arg.name: s for s in program.graph_signature.input_specs if hasattr(s.arg, "name")}
    for node in program.graph_module.graph.find_nodes(op="placeholder"):
        spec = specs.get(node.name)
        value = node.meta.get("val")
        if spec is None or spec.kind == InputKind.USER_INPUT or not isinstance(value, torch.Tensor):
            continue
        for store in (program.state_dict, program.constants):
            tensor: Any = store.get(spec.target or "")
            if isinstance(tensor, torch.Tensor) and not _is_dense(tensor):
                dense = tensor.detach().contiguous()
                if isinstance(tensor, torch.nn.Parameter):
                    dense = torch.nn.Parameter(dense, tensor.requires_grad)
                store[spec.target or ""] = dense
                node.meta["val"] = value.contiguous()
                stale.add(node)
    recompute_values(program.graph_module, stale)
    return bool(stale)


def _is_dense(tensor: torch.Tensor) -> bool:
    return is_contiguous(tensor) or is_channels_last(tensor)
