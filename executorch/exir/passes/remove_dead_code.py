"""Removal of what nothing reads: calls, parameters and constants."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.torch_internals import HigherOrderOperator, find_schema, set_parts

_EFFECTS = ("_assert", "sym_constrain_range")


def _is_effectful(node: Node) -> bool:
    schema = find_schema(node.target)
    if isinstance(node.target, HigherOrderOperator) or schema is None:
        return node.is_impure()
    name = schema.name.partition("::")[2]
    return schema.is_mutable or name.startswith(_EFFECTS)


class RemoveDeadCode(GraphEdit):
    """Erase calls without users and without effects."""

    def edit(self, graph_module: GraphModule) -> bool:
        graph = graph_module.graph
        modified = False
        for node in reversed(graph.nodes):
            if node.users or node.op not in ("call_function", "get_attr"):
                continue
            if node.op == "get_attr" or not _is_effectful(node):
                graph.erase_node(node)
                modified = True
        return modified


def remove_unused_parameters(program: ExportedProgram) -> bool:
    """Erase parameters without users from graph, signature and state dict, in place."""
    signature = program.graph_signature
    parameters = {s.arg.name: s for s in signature.input_specs if s.kind == InputKind.PARAMETER}
    unused = [
        n
        for n in program.graph_module.graph.find_nodes(op="placeholder")
        if n.name in parameters and not n.users
    ]
    if not unused:
        return False
    gone = {n.name for n in unused}
    targets = {parameters[name].target for name in gone}
    for node in unused:
        program.graph_module.graph.erase_node(node)
    set_parts(
        program,
        graph_signature=ExportGraphSignature(
            [s for s in signature.input_specs if getattr(s.arg, "name", None) not in gone],
            signature.output_specs,
        ),
    )
    set_parts(program, state_dict={k: v for k, v in program.state_dict.items() if k not in targets})
    return True
