from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import InputSpec, TensorArgument

from executorch.exir.graph.program_view import ProgramView


def duplicate_constant_node(exported_program: ExportedProgram, candidate_node: str) -> set[str]:
    """Give every reader of a constant but the first a placeholder of its own, which names the same
    tensor, in place; returns the names of the new nodes.

    `to_backend` needs no such copies: a constant that is tagged becomes each reader's own.
    """
    graph = exported_program.graph
    node = next((n for n in graph.find_nodes(op="placeholder") if n.name == candidate_node), None)
    if node is None:
        raise ValueError(f"the program has no input {candidate_node!r}")
    view = ProgramView(exported_program)
    given = view.inputs[node]
    added: dict[str, InputSpec] = {}
    readers = [user for user in node.users if user.op != "output"]
    for number, user in enumerate(readers[1:]):
        with graph.inserting_after(node):
            new = graph.placeholder(f"{node.name}_copy_{number}")
        new.meta = dict(node.meta)
        user.replace_input_with(node, new)
        target = f"{given.target}_copy_{number}"
        added[new.name] = InputSpec(given.kind, TensorArgument(new.name), target, given.persistent)
        view.store_of(given)[target] = view.tensor_of(given)
    view.update_inputs(added)
    exported_program.graph_module.recompile()
    return set(added)
