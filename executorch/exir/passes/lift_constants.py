"""Constants that passes attached to a graph module become inputs of the exported program."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import GraphModule, Node

from executorch.exir.dialects.edge._ops import edge_op
from executorch.exir.graph.graph_edit import attribute_of, insert_before, replace_node
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView

_PREFIX = "_lifted_tensor_constant"


class LiftConstants(Pass):
    """Turn tensors read by `get_attr` into placeholders of kind BUFFER.

    Before    c = get_attr[_tensor_constant0]
    After     c = placeholder[_lifted_tensor_constant0], listed in the signature and state dict
    Ensures   equal scalars share one placeholder; inside control flow, where sub-graphs have no
              constants, a scalar becomes an `aten.full`.
    """

    def edit(self, view: ProgramView) -> bool:
        if view.program is None:
            return False
        for graph_module in list(view.graph_modules())[1:]:
            _fill_in_place(graph_module)
        lifted: dict[str, InputSpec] = {}
        data: dict[str, Tensor] = {}
        shared: dict[Any, Node] = {}
        first_input = view.first_input
        taken = {s.target for s in view.inputs.values()} | view.program.state_dict.keys()
        number = 0
        for node in _tensor_reads(view.graph_module):
            tensor = attribute_of(view.graph_module, str(node.target))
            key = (tensor.dtype, repr(tensor.item())) if tensor.dim() == 0 else id(tensor)
            placeholder = shared.get(key)
            if placeholder is None:
                while (name := f"{_PREFIX}{number}") in taken:
                    number += 1
                taken.add(name)
                with view.graph.inserting_before(first_input):
                    placeholder = shared[key] = view.graph.placeholder(name)
                placeholder.meta = dict(node.meta)
                argument = TensorArgument(name=placeholder.name)
                lifted[placeholder.name] = InputSpec(InputKind.BUFFER, argument, name, True)
                data[name] = tensor
            replace_node(node, placeholder)
            if not any(n.target == node.target for n in view.graph.find_nodes(op="get_attr")):
                delattr(view.graph_module, str(node.target))
        if lifted:
            view.update_inputs(lifted, data)
        return bool(lifted)


def _tensor_reads(graph_module: GraphModule) -> list[Node]:
    reads = graph_module.graph.find_nodes(op="get_attr")
    return [n for n in reads if isinstance(attribute_of(graph_module, n.target), torch.Tensor)]


def _fill_in_place(graph_module: GraphModule) -> None:
    for node in _tensor_reads(graph_module):
        tensor = attribute_of(graph_module, str(node.target))
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
