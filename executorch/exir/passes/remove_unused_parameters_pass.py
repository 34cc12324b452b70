"""Parameters that no node reads leave the program."""

from __future__ import annotations

import copy

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from executorch.exir.torch_internals import set_parts


def remove_unused_parameters_pass(ep: ExportedProgram) -> ExportedProgram:
    """`ep`, edited in place: without parameters, their placeholders and data, that nothing uses."""
    nodes = {n.name: n for n in ep.graph_module.graph.find_nodes(op="placeholder")}
    signature = copy.deepcopy(ep.graph_signature)
    unused = [
        spec
        for spec in signature.input_specs
        if spec.kind is InputKind.PARAMETER and not nodes[spec.arg.name].users
    ]
    for spec in unused:
        signature.input_specs.remove(spec)
        ep.graph_module.graph.erase_node(nodes[spec.arg.name])
    still_named = {spec.target for spec in signature.input_specs}
    for spec in unused:
        if spec.target not in still_named:
            ep.state_dict.pop(str(spec.target), None)
    set_parts(ep, graph_signature=signature)
    ep.graph_module.recompile()
    return ep
