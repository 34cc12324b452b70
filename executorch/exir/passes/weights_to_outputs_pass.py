"""Weights that a training program's optimizer updates between calls."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Node

from executorch.exir.graph.updated_weights import updated_weights
from executorch.exir.torch_internals import set_parts


def weights_to_outputs_pass(program: ExportedProgram) -> bool:
    """Return the weights that have gradients, so that an optimizer can update them; true if there
    are any.

    Before    output(loss, gradient of w), as `_export_forward_backward` makes it
    After     output(loss, gradient of w, w); the new output is of the kind TOKEN
    Ensures   weights in the order of their gradients. Planning gives them memory that can be
              written, which loading fills with their values.
    """
    signature = program.graph_signature
    placeholders = {n.name: n for n in program.graph.find_nodes(op="placeholder")}
    of_target = {
        s.target: placeholders[s.arg.name]  # type: ignore[union-attr]
        for s in signature.input_specs
        if s.kind is InputKind.PARAMETER
    }
    output = program.graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    weights: list[Node] = [
        of_target[spec.target]
        for spec, result in zip(signature.output_specs, results, strict=True)
        if spec.kind is OutputKind.GRADIENT_TO_PARAMETER and isinstance(result, Node)
    ]
    if not weights:
        return False
    output.args = ((*results, *weights),)
    added = [OutputSpec(OutputKind.TOKEN, TensorArgument(w.name), None) for w in weights]
    set_parts(
        program,
        graph_signature=ExportGraphSignature(
            signature.input_specs, [*signature.output_specs, *added]
        ),
    )
    program.graph_module.recompile()
    return True


def training_methods(name: str, signature: ExportGraphSignature) -> dict[str, list[int | str]]:
    """Method -> the values it returns, of the methods from which a trainer learns about `name`: at
    which output its gradients and its weights start, and their names. Empty for other programs."""
    mutations = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
    kinds = [s.kind for s in signature.output_specs if s.kind not in mutations]
    weights = updated_weights(signature)
    if not weights:
        return {}
    return {
        f"__et_training_gradients_index_{name}": [kinds.index(OutputKind.GRADIENT_TO_PARAMETER)],
        f"__et_training_fqn_{name}": list(weights.values()),
        f"__et_training_parameters_index_{name}": [kinds.index(OutputKind.TOKEN)],
    }
