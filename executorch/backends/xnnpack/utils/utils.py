"""Constants of a program, and arguments of its nodes in one form."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.dialects._ops import ops
from executorch.exir.torch_internals import (
    get_buffer,
    get_lifted_tensor_constant,
    get_param,
    is_buffer,
    is_lifted_tensor_constant,
    is_param,
)


def check_or_raise(condition: bool, err: str) -> None:
    """RuntimeError(err) unless `condition`."""
    if not condition:
        raise RuntimeError(err)


def is_node(node: Any) -> bool:
    return isinstance(node, Node)


def is_getitem(node: Node) -> bool:
    return node.op == "call_function" and node.target is operator.getitem


def get_input_node(node: Node, input_index: int) -> Node:
    found = node.args[input_index]
    if not isinstance(found, Node):
        raise TypeError(f"{node}: argument {input_index} is {found!r}, expected a node")
    return found


def is_get_attr_node(node: Any) -> bool:
    return isinstance(node, Node) and node.op == "get_attr"


def is_param_node(exp_prog: ExportedProgram, node: Node) -> bool:
    """Whether it is a parameter, buffer or constant of the program."""
    kinds = (is_param, is_buffer, is_lifted_tensor_constant)
    return is_get_attr_node(node) or any(kind(exp_prog, node) for kind in kinds)


def get_param_tensor(exp_prog: ExportedProgram, node: Node | None) -> torch.Tensor | None:
    """Data of a parameter, buffer or constant; RuntimeError for another node."""
    if node is None:
        return None
    for kind, get in (
        (is_param, get_param),
        (is_buffer, get_buffer),
        (is_lifted_tensor_constant, get_lifted_tensor_constant),
    ):
        if kind(exp_prog, node):
            return get(exp_prog, node)
    if is_get_attr_node(node):
        owner = node.graph.owning_module or exp_prog.graph_module
        return operator.attrgetter(str(node.target))(owner)
    raise RuntimeError(f"{node} ({node.op}) is no parameter, buffer or constant")


def get_tensor_name(exp_prog: ExportedProgram, node: Node | None) -> str:
    """The name in the model of a parameter, buffer or constant; else what the node calls."""
    if node is None:
        return ""
    signature = exp_prog.graph_signature
    for names in (
        signature.inputs_to_parameters,
        signature.inputs_to_buffers,
        signature.inputs_to_lifted_tensor_constants,
    ):
        if node.name in names:
            return names[node.name]
    if not isinstance(node.target, str):
        raise AssertionError(f"{node}: {node.target} has no name in the model")
    return node.target


def normalize_mean_dims(mean_dims: Sequence[int] | int | None, rank: int) -> list[int]:
    """Dimensions counted from the front; None: all. ValueError for one that there is not."""
    if rank <= 0:
        raise ValueError(f"Expected rank > 0, got {rank}")
    if mean_dims is None:
        return list(range(rank))
    dims = [mean_dims] if isinstance(mean_dims, int) else list(mean_dims)
    for dim in dims:
        if not -rank <= dim < rank:
            raise ValueError(f"dim {dim} is out of range for rank {rank}")
    return [dim % rank for dim in dims]


def get_relu_fused_node(node: Node) -> Node | None:
    """The relu that is the only reader of `node`."""
    users = list(node.users)
    if len(users) == 1 and users[0].target is ops.edge.aten.relu.default:
        return users[0]
    return None
