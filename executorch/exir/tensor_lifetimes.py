"""Which tensors of a graph need planned memory, and from which node to which they are alive."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind
from torch.fx import GraphModule, Node

from executorch.exir import memory
from executorch.exir.graph.operator_kind import is_delegate_call, is_out_variant, overload_of
from executorch.exir.graph.updated_weights import updated_weights
from executorch.exir.tensor import TensorSpec
from executorch.exir.torch_internals import HigherOrderOperator
from executorch.exir.view_spec import ViewSpec


def _control_flow_nodes(graph_module: GraphModule, name: str) -> Iterator[Node]:
    for node in graph_module.graph.nodes:
        if isinstance(node.target, HigherOrderOperator) and node.target.name() == name:
            yield node


def get_cond_nodes(graph_module: GraphModule) -> Iterable[Node]:
    return _control_flow_nodes(graph_module, "cond")


def get_map_nodes(graph_module: GraphModule) -> Iterable[Node]:
    return _control_flow_nodes(graph_module, "map_impl")


def get_scan_nodes(graph_module: GraphModule) -> Iterable[Node]:
    return _control_flow_nodes(graph_module, "scan")


def get_while_nodes(graph_module: GraphModule) -> Iterable[Node]:
    return _control_flow_nodes(graph_module, "while_loop")


def filter_nodes(inputs: Iterable[Any]) -> Iterable[Node]:
    """The nodes of nested lists of arguments."""
    for item in inputs:
        if isinstance(item, Node):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from filter_nodes(item)
        elif isinstance(item, dict):
            yield from filter_nodes(item.values())


def get_node_tensor_specs(node: Node) -> list[TensorSpec]:
    """The specs of a node's results, flattened; of an output node, those of what it returns: passes
    that put another node in the place of a result leave its own."""
    nodes = filter_nodes(node.args) if node.op == "output" else [node]
    return [spec for n in nodes for spec in flatten_specs(n.meta.get("spec"))]


def flatten_specs(specs: Any) -> Iterator[TensorSpec]:
    if isinstance(specs, TensorSpec):
        yield specs
    elif isinstance(specs, (list, tuple)):
        for spec in specs:
            yield from flatten_specs(spec)


def storage_of(spec: TensorSpec) -> TensorSpec:
    """The spec whose memory is planned for `spec`: itself, or what it is a view of."""
    while isinstance(spec, ViewSpec):
        spec = spec.base
    return spec


def _specs_of(nodes: Iterable[Node]) -> set[TensorSpec]:
    return {storage_of(spec) for node in nodes for spec in get_node_tensor_specs(node)}


def mutable_buffer_nodes(
    nodes: Iterable[Node], signature: ExportGraphSignature | None
) -> list[Node]:
    """Placeholders of buffers that the method mutates, and of weights that a trainer updates."""
    if signature is None:
        return []
    mutated = {s.target for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    names = {
        s.arg.name
        for s in signature.input_specs
        if s.kind is InputKind.BUFFER and s.target in mutated
    } | updated_weights(signature).keys()
    return [n for n in nodes if n.op == "placeholder" and n.name in names]


def _mutated_input_names(signature: ExportGraphSignature | None) -> set[str]:
    if signature is None:
        return set()
    kind = OutputKind.USER_INPUT_MUTATION
    return {str(s.target) for s in signature.output_specs if s.kind is kind}


def get_graph_input_tensors(
    nodes: Iterable[Node], graph_signature: ExportGraphSignature | None = None
) -> set[TensorSpec]:
    """Specs of placeholders that are no mutable buffers."""
    placeholders = [n for n in nodes if n.op == "placeholder"]
    buffers = set(mutable_buffer_nodes(placeholders, graph_signature))
    return _specs_of(n for n in placeholders if n not in buffers)


def get_graph_output_tensors(
    nodes: Iterable[Node], graph_signature: ExportGraphSignature | None = None
) -> set[TensorSpec]:
    """Specs that the output node returns to the caller."""
    nodes = list(nodes)
    buffers = _specs_of(mutable_buffer_nodes(nodes, graph_signature))
    return _specs_of(n for n in nodes if n.op == "output") - buffers


def get_input_specs(graph_module: GraphModule) -> set[TensorSpec]:
    return _specs_of(n for n in graph_module.graph.nodes if n.op == "placeholder")


def get_return_specs(graph_module: GraphModule) -> set[TensorSpec]:
    return _specs_of(n for n in graph_module.graph.nodes if n.op == "output")


def _names_memory(node: Node, ignore_out_var_node: bool) -> bool:
    """Whether a node's specs are collected where it stands."""
    if node.op in ("placeholder", "output", "get_attr"):
        return True
    if node.op != "call_function":
        return False
    if node.target in (memory.alloc, memory.view, operator.getitem) or is_delegate_call(node):
        return True
    if isinstance(node.target, HigherOrderOperator):
        return True
    op = overload_of(node.target)
    return op is not None and is_out_variant(op) and not ignore_out_var_node


def collect_specs_from_nodes(
    nodes: Iterable[Node],
    graph_signature: ExportGraphSignature | None = None,
    ignore_graph_input: bool = False,
    ignore_graph_output: bool = False,
    ignore_mutable_buffers: bool = False,
    ignore_const: bool = True,
    ignore_out_var_node: bool = True,
    dedup: bool = True,
    do_assertion: bool = True,
    ignore_dynamic_unbound_tensor: bool = True,
) -> Iterable[TensorSpec]:
    """The specs that need memory of their own, in node order; a view stands for its base.

    Inputs that the method writes into are left to the caller's memory, which then has the writes.
    """
    nodes = list(nodes)
    skipped: set[TensorSpec] = set()
    if ignore_graph_input:
        skipped |= get_graph_input_tensors(nodes, graph_signature)
    if ignore_graph_output:
        skipped |= get_graph_output_tensors(nodes, graph_signature)
    if ignore_mutable_buffers:
        skipped |= _specs_of(mutable_buffer_nodes(nodes, graph_signature))
    written = _mutated_input_names(graph_signature)
    skipped |= _specs_of(n for n in nodes if n.op == "placeholder" and n.name in written)
    seen: set[TensorSpec] = set()
    for node in nodes:
        if not _names_memory(node, ignore_out_var_node):
            continue
        for view in get_node_tensor_specs(node):
            spec = storage_of(view)
            if spec in skipped or (dedup and spec in seen) or (ignore_const and spec.const):
                continue
            if spec.storage_base is not None:
                continue
            if ignore_dynamic_unbound_tensor and spec.is_dynamic_unbound_tensor:
                continue
            if do_assertion and any(not isinstance(extent, int) for extent in spec.shape):
                raise ValueError(
                    f"{node}: shape {spec.shape} is not numbers yet; run a "
                    "sym_shape_eval_pass before planning"
                )
            seen.add(spec)
            yield spec


def update_tensor_lifetime(
    node: Node,
    spec: TensorSpec,
    node_idx: int,
    max_node_idx: int,
    gs: ExportGraphSignature | None = None,
) -> None:
    """Let `spec` be alive at `node_idx`: inputs from the start, mutable buffers to the end."""
    first, last = spec.lifetime
    first = node_idx if first is None else min(first, node_idx)
    last = node_idx if last is None else max(last, node_idx)
    if node.op == "placeholder":
        first = 0
        if mutable_buffer_nodes([node], gs):
            last = max_node_idx
    spec.lifetime = [first, last]


def update_all_tensors_lifetime(
    graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None
) -> set[TensorSpec]:
    """Set the lifetime of every spec of the graph anew; returns the specs."""
    nodes = list(graph_module.graph.nodes)
    specs: set[TensorSpec] = set()
    for spec in itertools.chain.from_iterable(get_node_tensor_specs(n) for n in nodes):
        specs.add(spec)
        storage_of(spec).lifetime = [None, None]
    buffers = set(mutable_buffer_nodes(nodes, graph_signature))
    end = len(nodes) - 1
    for index, node in enumerate(nodes):
        for source in (node, *node.all_input_nodes):
            for spec in get_node_tensor_specs(source):
                update_tensor_lifetime(source, spec, index, end)
                if source in buffers:
                    spec.lifetime = [0, end]
    return specs
