"""Exported programs of parts that were made one by one."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind
from torch.fx import GraphModule

from executorch.exir.torch_internals import pytree, set_parts


def make_program(
    graph_module: GraphModule,
    signature: ExportGraphSignature,
    state_dict: dict[str, Any],
    constants: dict[str, Any],
    like: ExportedProgram,
    in_spec: pytree.TreeSpec | None = None,
    out_spec: pytree.TreeSpec | None = None,
) -> ExportedProgram:
    """An exported program with the symbols and the dialect of `like`, which is not verified.
    Without specs its inputs are flat and it returns a list."""
    if in_spec is None:
        n_inputs = sum(s.kind is InputKind.USER_INPUT for s in signature.input_specs)
        in_spec = pytree.tree_flatten((tuple(range(n_inputs)), {}))[1]
    if out_spec is None:
        n_outputs = sum(s.kind is not OutputKind.BUFFER_MUTATION for s in signature.output_specs)
        out_spec = pytree.tree_flatten(list(range(n_outputs)))[1]
    call = ModuleCallSignature([], [], in_spec, out_spec)
    program = ExportedProgram.__new__(ExportedProgram)
    program.__dict__.update(like.__dict__)
    set_parts(
        program,
        graph_module=graph_module,
        graph_signature=signature,
        state_dict=state_dict,
        constants=constants,
        range_constraints=dict(like.range_constraints),
        module_call_graph=[ModuleCallEntry("", call)],
        example_inputs=None,
        guards_code=[],
    )
    return program
