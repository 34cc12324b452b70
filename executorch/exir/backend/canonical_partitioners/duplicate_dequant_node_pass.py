from __future__ import annotations

from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.torch_internals import find_schema


class DuplicateDequantNodePass(GraphEdit):
    """Give every reader of a dequantized value a dequantization of its own, so that partitions
    which take the calls around it need not share it.

    Before    y = dequantize(q, *p); a = add(y, y); b = relu(y)
    After     y = dequantize(q, *p); y2 = dequantize(q, *p); a = add(y, y); b = relu(y2)
    Ensures   equal values; each copy stands in front of its reader.
    Leaves    the dequantization of values that the graph returns.
    """

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            if not _dequantizes(node):
                continue
            readers = [user for user in node.users if user.op == "call_function"]
            for reader in readers if len(readers) < len(node.users) else readers[1:]:
                with graph_module.graph.inserting_before(reader):
                    copy = graph_module.graph.node_copy(node)
                reader.replace_input_with(node, copy)
                modified = True
        return modified


def _dequantizes(node: Node) -> bool:
    schema = find_schema(node.target)
    return schema is not None and schema.name.rpartition("::")[2].startswith("dequantize")
