"""Removal of what nothing reads: calls, and parameters."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node

from executorch.exir.graph.pass_driver import GraphPass, Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.torch_internals import HigherOrderOperator, find_schema

_EFFECTS = ("_assert", "sym_constrain_range")


def _is_effectful(node: Node) -> bool:
    schema = find_schema(node.target)
    if isinstance(node.target, HigherOrderOperator) or schema is None:
        return node.is_impure()
    name = schema.name.partition("::")[2]
    return schema.is_mutable or name.startswith(_EFFECTS)


def remove_dead_code(graph_module: GraphModule) -> bool:
    """Erase calls of one graph without users and without effects; true if there were any."""
    modified = False
    for node in reversed(graph_module.graph.nodes):
        if node.users or node.op not in ("call_function", "get_attr"):
            continue
        if node.op == "get_attr" or not _is_effectful(node):
            graph_module.graph.erase_node(node)
            modified = True
    return modified


class RemoveDeadCode(GraphPass):
    """Erase calls without users and without effects."""

    def edit_graph(self, graph_module: GraphModule) -> bool:
        return remove_dead_code(graph_module)


dead_code_elimination_pass = RemoveDeadCode()


class RemoveUnusedParameters(Pass):
    """Erase parameters without users from graph, signature and state dict."""

    def edit(self, view: ProgramView) -> bool:
        kind = InputKind.PARAMETER
        unused = [n for n, spec in view.inputs.items() if spec.kind is kind and not n.users]
        for node in unused:
            view.graph.erase_node(node)
        if unused:
            view.update_inputs()
        return bool(unused)


def remove_unused_parameters_pass(ep: ExportedProgram) -> ExportedProgram:
    """`RemoveUnusedParameters` on `ep` itself, which is returned."""
    RemoveUnusedParameters()(ep)
    return ep
