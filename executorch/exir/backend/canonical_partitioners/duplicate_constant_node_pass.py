from __future__ import annotations

import copy

from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature

from executorch.exir.torch_internals import set_parts


def duplicate_constant_node(exported_program: ExportedProgram, candidate_node: str) -> set[str]:
    """Give every reader of a constant but the first a placeholder of its own, which names the same
    tensor, in place; returns the names of the new nodes.

    `to_backend` needs no such copies: a constant that is tagged becomes each reader's own.
    """
    graph = exported_program.graph
    node = next((n for n in graph.find_nodes(op="placeholder") if n.name == candidate_node), None)
    if node is None:
        raise ValueError(f"the program has no input {candidate_node!r}")
    signature = exported_program.graph_signature
    specs = list(signature.input_specs)
    place = next(i for i, s in enumerate(specs) if getattr(s.arg, "name", None) == node.name)
    store = exported_program.state_dict
    if specs[place].target not in store:
        store = exported_program.constants
    added: set[str] = set()
    readers = [user for user in node.users if user.op != "output"]
    for number, user in enumerate(readers[1:]):
        with graph.inserting_after(node):
            new = graph.placeholder(f"{node.name}_copy_{number}")
        new.meta = dict(node.meta)
        user.replace_input_with(node, new)
        spec = copy.deepcopy(specs[place])
        spec.arg.name = new.name  # type: ignore[union-attr]
        spec.target = f"{specs[place].target}_copy_{number}"
        store[spec.target] = store[specs[place].target]  # type: ignore[index]
        specs.insert(place + 1, spec)
        added.add(new.name)
    set_parts(exported_program, graph_signature=ExportGraphSignature(specs, signature.output_specs))
    exported_program.graph_module.recompile()
    return added
