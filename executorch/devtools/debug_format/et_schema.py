"""Graphs of exported programs in the form of `base_schema`."""

from __future__ import annotations

import operator
from enum import Enum
from typing import Any

import torch
from torch import fx

from executorch.devtools.debug_format.base_schema import (
    Node,
    OperatorGraph,
    OperatorNode,
    ValueNode,
)
from executorch.exir.torch_internals import find_schema, pytree

__all__ = [
    "FXOperatorGraph",
    "Node",
    "OperatorGraph",
    "OperatorNode",
    "RESERVED_METADATA_ARG",
    "ValueNode",
]


class RESERVED_METADATA_ARG(Enum):
    DEBUG_HANDLE = "debug_handle"
    MODULE_STACK = "nn_module_stack"
    SOURCE_FN_STACK = "source_fn_stack"
    MODULE_TYPE = "module_type"
    PROFILE_START_TIME = "profile_start_time"
    PROFILE_END_TIME = "profile_end_time"
    LOAD_START_TIME = "load_start_time"
    LOAD_END_TIME = "load_end_time"
    MEMORY_USAGE = "memory_usage"
    DEBUG_ENTRY = "debug_entry"
    STACK_TRACE = "stack_trace"
    DEBUG_DATA = "debug_data"
    METRICS_KEYWORD = "metrics"
    PROFILE_SUMMARY_COLDSTART = "Coldstart"
    PROFILE_SUMMARY_AVERAGE = "Average"
    PROFILE_SUMMARY_P90 = "P90"
    PROFILE_SUMMARY_P10 = "P10"
    PROFILE_SUMMARY_MIN = "Min"
    PROFILE_SUMMARY_MAX = "Max"
    AGGREGATED_OP_TABLE = "Aggregated op stats"
    RUN_SUMMARY_INDIVIDUAL_RUNS_TABLE = "Run summary individual stats"
    RUN_SUMMARY_TABLE = "Aggregated run summary stats"
    OP_INSTANCE_SUMMARY_TABLE = "Individual op stats"
    TABLES_KEYWORD = "tables"
    KV_KEYWORD = "kv"
    MODEL_LOAD_TIME_KEY = "Model load time (ms)"


_METADATA = ("debug_handle", "stack_trace", "nn_module_stack")


class FXOperatorGraph(OperatorGraph):
    @staticmethod
    def gen_operator_graph(
        model: fx.GraphModule,
        skip_stack_trace: bool | None = False,
        enable_module_hierarchy: bool = False,
    ) -> FXOperatorGraph:
        """The graph `base` of the three graphs `inputs`, `forward` and `outputs`.

        Nodes are named `<name of the fx node>_`, arguments that are no tensors `<argument>_<n>`.
        Operators have debug handle, module stack and, without `skip_stack_trace`, stack trace as
        metadata; `enable_module_hierarchy` is accepted, modules are in the metadata always.
        """
        made: dict[fx.Node, Node] = {}
        parts: dict[str, list[Any]] = {"inputs": [], "forward": [], "outputs": []}
        for node in model.graph.nodes:
            if node.op == "placeholder":
                made[node] = _value(node, [])
                parts["inputs"].append(made[node])
            elif node.op == "output":
                inputs = [made[n] for n in node.all_input_nodes if n in made]
                parts["outputs"].append(_value(node, inputs))
            elif node.target is operator.getitem:
                made[node] = made[node.args[0]]
            elif node.op == "call_function":
                count = sum(isinstance(e, ValueNode) for e in parts["forward"])
                constants, made[node] = _operator(node, made, count, bool(skip_stack_trace))
                parts["forward"] += [*constants, made[node]]
        graphs = [FXOperatorGraph(name, elements) for name, elements in parts.items()]
        return FXOperatorGraph("base", list(graphs))


def _operator(
    node: fx.Node, made: dict[fx.Node, Node], count: int, skip_stack_trace: bool
) -> tuple[list[ValueNode], OperatorNode]:
    """The constants that it needs, numbered from `count`, and the operator."""
    schema = find_schema(node.target)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    constants: list[ValueNode] = []
    inputs: list[Node] = []
    for i, argument in enumerate(node.args):
        nodes = _nodes(argument)
        if nodes:
            inputs += [made[n] for n in nodes if n in made]
        elif argument is not None:
            name = names[i] if i < len(names) else "arg"
            constants.append(ValueNode(f"{name}_{count + len(constants)}", val=argument))
            inputs.append(constants[-1])
    kept = [key for key in _METADATA if not (skip_stack_trace and key == "stack_trace")]
    return constants, OperatorNode(
        f"{node.name}_",
        inputs,
        _shapes(node.meta.get("val")),
        {key: node.meta[key] for key in kept if key in node.meta},
        names or None,
        str(getattr(node.target, "__name__", node.target)),
    )


def _value(node: fx.Node, inputs: list[Node]) -> ValueNode:
    value = node.meta.get("val")
    if value is None and node.op == "output":
        value = [n.meta.get("val") for n in node.all_input_nodes]
    dtypes = [tensor.dtype for tensor in _tensors(value)]
    return ValueNode(f"{node.name}_", inputs, _shapes(value), {}, None, str(dtypes))


def _nodes(argument: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(argument, found.append)
    return found


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if hasattr(leaf, "shape")]


def _shapes(value: Any) -> list[list[int]]:
    return [list(tensor.shape) for tensor in _tensors(value)]
