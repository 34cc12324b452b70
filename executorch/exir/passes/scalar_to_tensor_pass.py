from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit, provenance
from executorch.exir.graph.operands import dtype_beside, scalar_operands
from executorch.exir.torch_internals import detect_fake_mode


class ScalarToTensorPass(GraphEdit):
    """Turn Python numbers in places for tensors into constant tensors.

    Before    y = aten.add.Tensor(x, 2)
    After     c = get_attr[_tensor_constant0]; y = aten.add.Tensor(x, c)
    Ensures   equal values and dtypes: c is rank 0 and has the dtype that 2 takes beside x, so no
              cast is left to do at run time.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            for number, replace in scalar_operands(node):
                replace(_constant(graph_module, node, number))
                modified = True
        return modified


def _constant(graph_module: GraphModule, user: Node, number: Any) -> Node:
    try:
        tensor = torch.tensor(number, dtype=dtype_beside(user, number))
    except (RuntimeError, OverflowError):  # too large for that dtype; let promotion widen it
        tensor = torch.tensor(number)
    return attach_constant(graph_module, user, tensor)


def attach_constant(graph_module: GraphModule, anchor: Node, tensor: torch.Tensor) -> Node:
    """A `get_attr` node before `anchor` that reads `tensor`, kept on the module."""
    name = f"_tensor_constant{sum(1 for _ in graph_module.named_buffers(recurse=False))}"
    while hasattr(graph_module, name):
        name += "_"
    graph_module.register_buffer(name, tensor)
    with anchor.graph.inserting_before(anchor):
        node = anchor.graph.create_node("get_attr", name, (), {})
    node.meta = provenance(anchor)
    mode = detect_fake_mode([n.meta.get("val") for n in anchor.all_input_nodes])
    node.meta["val"] = tensor if mode is None else mode.from_tensor(tensor, static_shapes=True)
    return node
