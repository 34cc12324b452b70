"""Constants that passes attached to a graph module become inputs of the exported program."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    TensorArgument,
)
from torch.fx import GraphModule, Node

from executorch.exir.dialects.edge._ops import edge_op
from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.torch_internals import set_parts

_PREFIX = "_lifted_tensor_constant"


def lift_constants(program: ExportedProgram) -> bool:
    """Turn tensors read by `get_attr` into placeholders of kind BUFFER, in place.

    Before    c = get_attr[_tensor_constant0]
    After     c = placeholder[_lifted_tensor_constant0], listed in the signature and state dict
    Ensures   equal scalars share one placeholder; inside control flow, where sub-graphs have no
              constants, a scalar becomes an `aten.full`.
    """
    graph_module = program.graph_module
    lifted: list[InputSpec] = []
    shared: dict[Any, Node] = {}
    signature = program.graph_signature
    for gm in list(all_graph_modules(graph_module))[1:]:
        _fill_in_place(gm)
    first_input = _first_user_input(graph_module, signature)
    taken = {spec.target for spec in signature.input_specs} | program.state_dict.keys()
    number = 0
    for node in _tensor_reads(graph_module):
        tensor = _attribute(graph_module, str(node.target))
        key = (tensor.dtype, repr(tensor.item())) if tensor.dim() == 0 else id(tensor)
        placeholder = shared.get(key)
        if placeholder is None:
            while (name := f"{_PREFIX}{number}") in taken:
                number += 1
            taken.add(name)
            with graph_module.graph.inserting_before(first_input):
                placeholder = graph_module.graph.placeholder(name)
            placeholder.meta = dict(node.meta)
            shared[key] = placeholder
            spec = TensorArgument(name=placeholder.name)
            lifted.append(InputSpec(InputKind.BUFFER, spec, target=name, persistent=True))
            program.state_dict[name] = tensor
        replace_node(node, placeholder)
        if not any(n.target == node.target for n in graph_module.graph.find_nodes(op="get_attr")):
            delattr(graph_module, str(node.target))
    if lifted:
        _insert_specs(program, lifted)
    return bool(lifted)


def _attribute(module: torch.nn.Module, target: str) -> Any:
    for part in target.split("."):
        module = getattr(module, part)
    return module


def _tensor_reads(graph_module: GraphModule) -> list[Node]:
    reads = graph_module.graph.find_nodes(op="get_attr")
    return [n for n in reads if isinstance(_attribute(graph_module, n.target), torch.Tensor)]


def _first_user_input(graph_module: GraphModule, signature: ExportGraphSignature) -> Node:
    """The node before which constants go: the first user input, or whatever follows the inputs."""
    user_inputs = set(signature.user_inputs)
    for node in graph_module.graph.nodes:
        if node.op != "placeholder" or node.name in user_inputs:
            return node
    raise AssertionError("a graph ends with an output node")


def _insert_specs(program: ExportedProgram, lifted: list[InputSpec]) -> None:
    old = program.graph_signature.input_specs
    user_kinds = (InputKind.USER_INPUT,)
    at = next((i for i, spec in enumerate(old) if spec.kind in user_kinds), len(old))
    set_parts(
        program,
        graph_signature=ExportGraphSignature(
            [*old[:at], *lifted, *old[at:]], program.graph_signature.output_specs
        ),
    )


def _fill_in_place(graph_module: GraphModule) -> None:
    for node in _tensor_reads(graph_module):
        tensor = _attribute(graph_module, str(node.target))
        if tensor.dim() != 0:
            raise NotImplementedError(
                f"{node}: a constant of shape {list(tensor.shape)} inside a control flow branch; "
                "pass it to the branch as an operand"
            )
        full = edge_op(torch.ops.aten.full.default)
        replacement = insert_before(
            node, full, ([], tensor.item()), {"dtype": tensor.dtype}, node.meta["val"]
        )
        replace_node(node, replacement)
        delattr(graph_module, str(node.target))
