"""The smallest complete delegate, ahead-of-time half; `runtime/` runs what it writes.

    edge = to_edge_transform_and_lower(program, partitioner=[ExamplePartitioner()])

An operator is one decorated function: the decorator's condition is what the partitioner claims by,
the function writes the step. Both halves agree on the text in `runtime/text.h`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.acyclic_groups import acyclic_groups
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.delegate_mapping import DelegateMappingBuilder
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.subgraphs import TAG
from executorch.exir.backend.tags import set_refusal, tag_constant_data
from executorch.exir.dialects._ops import ops as exir_ops

_aten = exir_ops.edge.aten

# The step of a call, given the numbers of its operands.
Step = Callable[[Node, list[int]], str]


@dataclass
class _Rule:
    step: Step
    when: Callable[[Node], bool]


_RULES: dict[Any, _Rule] = {}


def lowers(op: Any, when: Callable[[Node], bool] = lambda node: True) -> Callable[[Step], Step]:
    """Let the decorated function write the calls of `op` that meet `when`."""

    def register(step: Step) -> Step:
        _RULES[op] = _Rule(step, when)
        return step

    return register


def _unscaled(node: Node) -> bool:
    """add and sub multiply their second operand by `alpha`, which has no step here."""
    return node.kwargs.get("alpha", 1) == 1


@lowers(_aten.add.Tensor, when=_unscaled)
def _add(node: Node, operands: list[int]) -> str:
    return "add {} {}".format(*operands)


@lowers(_aten.sub.Tensor, when=_unscaled)
def _sub(node: Node, operands: list[int]) -> str:
    return "sub {} {}".format(*operands)


@lowers(_aten.mul.Tensor)
def _mul(node: Node, operands: list[int]) -> str:
    return "mul {} {}".format(*operands)


@lowers(_aten.mm.default)
def _mm(node: Node, operands: list[int]) -> str:
    return "mm {} {}".format(*operands)


@lowers(_aten.relu.default)
def _relu(node: Node, operands: list[int]) -> str:
    return f"relu {operands[0]}"


@lowers(_aten.sin.default)
def _sin(node: Node, operands: list[int]) -> str:
    return f"sin {operands[0]}"


def _refusal(node: Node) -> str | None:
    """Why a call is not delegated; None if it is."""
    rule = _RULES.get(node.target)
    if rule is None:
        return "ExampleBackend has no such operator"
    for each in (node, *node.all_input_nodes):
        value = each.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return f"ExampleBackend computes in float32, not with {each}"
        if value.dim_order() != tuple(range(value.dim())):
            return f"ExampleBackend takes contiguous tensors, which {each} is not"
    return None if rule.when(node) else "ExampleBackend has no step for these arguments"


class ExamplePartitioner(Partitioner):
    """Claims every call that a rule takes, with the constants it reads."""

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        graph = exported_program.graph_module.graph
        calls = [n for n in graph.nodes if n.op == "call_function"]
        supported = set()
        for node in calls:
            reason = _refusal(node)
            if reason is None:
                supported.add(node)
            else:
                set_refusal(node, reason)
        tags = {}
        for i, nodes in enumerate(acyclic_groups(graph, supported)):
            tags[f"example{i}"] = DelegationSpec(ExampleBackend.__name__, [])
            for node in nodes:
                node.meta[TAG] = f"example{i}"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)


class ExampleBackend(BackendDetails):
    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        graph = edge_program.graph_module.graph
        data = _constants(edge_program)
        placeholders = graph.find_nodes(op="placeholder")
        values = [n for n in placeholders if n.name not in data]
        values += [n for n in placeholders if n.name in data]  # the order that steps count in
        number = {node: i for i, node in enumerate(values)}
        store, mapping = NamedDataStore(), DelegateMappingBuilder(generated_identifiers=True)
        lines = [_write_constant(data[n.name], store) for n in values if n.name in data]
        for node in graph.nodes:
            if node.op == "call_function":
                reason = _refusal(node)
                if reason is not None:
                    raise RuntimeError(f"{node}: {reason}")
                operands = [number[a] for a in node.args if isinstance(a, Node)]
                lines.append(_RULES[node.target].step(node, operands))
                mapping.insert_delegate_mapping_entry(handles=node.meta.get("debug_handle", 0))
                number[node] = len(number)
        results = cast("list[Node]", graph.output_node().args[0])
        lines.append(" ".join(["outputs", *(str(number[n]) for n in results)]))
        return PreprocessResult(
            ("\n".join(lines) + "\n").encode(),
            debug_handle_map=mapping.get_delegate_mapping(),
            data_store_output=store.get_named_data_store_output(),
        )


def _constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Placeholder -> tensor, of what the delegate owns."""
    signature = program.graph_signature
    if signature.buffers_to_mutate:
        raise RuntimeError("ExampleBackend keeps no state between calls")
    return {
        s.arg.name: (program.state_dict | program.constants)[s.target]  # type: ignore[union-attr]
        for s in signature.input_specs
        if s.kind is not InputKind.USER_INPUT
    }


def _write_constant(tensor: torch.Tensor, store: NamedDataStore) -> str:
    """The key is made of the bytes, so that equal constants are stored once."""
    data = tensor.detach().contiguous().numpy().tobytes()
    key = f"example-{hashlib.sha256(data).hexdigest()[:32]}"
    store.add_named_data(key, data, alignment=16)
    return " ".join(["constant", key, *map(str, tensor.shape)])
