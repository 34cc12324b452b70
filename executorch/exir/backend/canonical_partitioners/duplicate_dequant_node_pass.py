from __future__ import annotations

from torch.fx import Node

from executorch.exir.graph.pass_driver import CallPass
from executorch.exir.torch_internals import find_schema


class DuplicateDequantNodePass(CallPass):
    """Give every reader of a dequantized value a dequantization of its own, so that partitions
    which take the calls around it need not share it.

    Before    y = dequantize(q, *p); a = add(y, y); b = relu(y)
    After     y = dequantize(q, *p); y2 = dequantize(q, *p); a = add(y, y); b = relu(y2)
    Ensures   equal values; each copy stands in front of its reader.
    Leaves    the dequantization of values that the graph returns.
    """

    def change(self, call: Node) -> bool:
        if not _dequantizes(call):
            return False
        readers = [user for user in call.users if user.op == "call_function"]
        others = readers if len(readers) < len(call.users) else readers[1:]
        for reader in others:
            with call.graph.inserting_before(reader):
                copy = call.graph.node_copy(call)
            reader.replace_input_with(call, copy)
        return bool(others)


def _dequantizes(node: Node) -> bool:
    schema = find_schema(node.target)
    return schema is not None and schema.name.rpartition("::")[2].startswith("dequantize")
