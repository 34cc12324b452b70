"""Functions for the ahead-of-time halves of backends, in upstream's module."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from executorch.exir.backend.delegate_mapping import DelegateMappingBuilder
from executorch.exir.backend.delegation_info import (
    DelegationBreakdown,
    DelegationInfo,
    get_delegation_info,
    print_delegation_info,
)
from executorch.exir.backend.graph_text import format_delegated_graph, print_delegated_graph
from executorch.exir.backend.tags import is_constant_data, tag_constant_data, tag_mutated_buffer
from executorch.exir.backend.why_no_partition import (
    ReportRejected,
    WhyNoPartition,
    WhyNoPartitionReporter,
)
from executorch.exir.delegate import delegate_calls
from executorch.exir.graph.operator_kind import is_delegate_call
from executorch.exir.lowered_backend_module import get_lowered_submodules
from executorch.exir.torch_internals import OpOverloadPacket

__all__ = [
    "DelegateMappingBuilder",
    "DelegationBreakdown",
    "DelegationInfo",
    "ReportRejected",
    "WhyNoPartition",
    "WhyNoPartitionReporter",
    "format_delegated_graph",
    "get_delegated_payload",
    "get_delegates",
    "get_delegation_info",
    "get_non_lowered_nodes",
    "is_constant_data",
    "is_identical_graph",
    "is_same_node",
    "is_shape_dynamic",
    "print_delegated_graph",
    "print_delegation_info",
    "tag_constant_data",
    "tag_mutated_buffer",
]


def get_delegates(graph: Graph) -> list[Node]:
    """The get_attr nodes of lowered modules."""
    return list(dict.fromkeys(call.args[0] for call in delegate_calls(graph)))  # type: ignore


def get_non_lowered_nodes(graph: Graph) -> list[Node]:
    """The calls that no delegate makes, without those that pick a delegate's result."""
    return [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and not is_delegate_call(node)
        and not (node.target is operator.getitem and is_delegate_call(node.args[0]))
    ]


def get_delegated_payload(graph_module: GraphModule) -> dict[str, tuple[str, list[Any], bytes]]:
    """Attribute -> (backend id, compile specs, processed bytes) of the lowered modules."""
    return {
        name: (module.backend_id, module.compile_specs, module.processed_bytes)
        for name, module, _ in get_lowered_submodules(graph_module)
    }


def is_same_node(node_left: Any, node_right: Any) -> bool:
    """Whether two nodes make the same call, their operands compared by what they call; or whether
    two lists of nodes do."""
    if isinstance(node_left, Node) and isinstance(node_right, Node):
        return bool(_shape_of_call(node_left) == _shape_of_call(node_right))
    left, right = list(node_left), list(node_right)
    return len(left) == len(right) and all(map(is_same_node, left, right))


def _shape_of_call(node: Node) -> Any:
    def kind(operand: Node) -> Any:
        return operand.op, None if operand.op == "placeholder" else operand.target

    return kind(node), torch.fx.node.map_arg((node.args, dict(node.kwargs)), kind)


def is_identical_graph(graph_left: GraphModule, graph_right: GraphModule) -> bool:
    """Whether two graphs make the same calls in the same order on the same operands."""
    left, right = list(graph_left.graph.nodes), list(graph_right.graph.nodes)
    if len(left) != len(right):
        return False
    position = {n: i for nodes in (left, right) for i, n in enumerate(nodes)}

    def described(node: Node) -> Any:
        arguments = torch.fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: position[n])
        return node.op, None if node.op == "placeholder" else node.target, arguments

    return all(described(a) == described(b) for a, b in zip(left, right, strict=True))


def is_shape_dynamic(node: Node) -> bool:
    """Whether a dimension of the node's result differs from call to call."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and any(
        not isinstance(extent, int) for extent in value.shape
    )


def remove_first_quant_and_last_dequant(graph_module: GraphModule) -> None:
    """Let a graph take and return quantized tensors: drop the quantization of its inputs and the
    dequantization of its outputs, in place."""
    graph = graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        name = getattr(node.target, "__name__", "")
        source: Any = node.args[0] if node.args else None
        at_input = isinstance(source, Node) and source.op == "placeholder"
        at_output = bool(node.users) and all(user.op == "output" for user in node.users)
        if ("dequantize_per" not in name and "quantize_per" in name and at_input) or (
            "dequantize_per" in name and at_output
        ):
            node.replace_all_uses_with(source)
            graph.erase_node(node)
    graph_module.recompile()


def replace_quantized_partition_with_op(
    graph_module: GraphModule, partition: Any, replacement_op: OpOverloadPacket
) -> tuple[Node, list[Node], list[Node]]:
    """Put one call of `replacement_op` in place of a source partition with its dequantized inputs
    and quantized output; returns (the call, the dequantizations, the quantizations)."""
    dequantized = [
        n
        for n in partition.input_nodes
        if "dequantize_per" in getattr(n.target, "__name__", str(n.target))
    ]
    quantized = [
        user
        for output in partition.output_nodes
        for user in output.users
        if "quantize_per" in getattr(user.target, "__name__", str(user.target))
    ]
    if len(quantized) != 1 or not dequantized:
        raise ValueError(
            f"the partition has {len(dequantized)} dequantized inputs and {len(quantized)} "
            "quantized outputs; expected some and one"
        )
    inputs = [n.args[0] if n in dequantized else n for n in partition.input_nodes]
    graph = graph_module.graph
    with graph.inserting_after(quantized[0]):
        call = graph.call_function(replacement_op, tuple(inputs))
    call.meta = dict(quantized[0].meta)
    quantized[0].replace_all_uses_with(call)
    graph.eliminate_dead_code()
    graph_module.recompile()
    return call, dequantized, quantized
