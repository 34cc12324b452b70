"""Weights that a training program's optimizer updates between calls."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Node

from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph.updated_weights import updated_weights


class WeightsToOutputs(Pass):
    """Return the weights that have gradients, so that an optimizer can update them.

    Before    output(loss, gradient of w), as `_export_forward_backward` makes it
    After     output(loss, gradient of w, w); the new output is of the kind TOKEN
    Ensures   weights in the order of their gradients. Planning gives them memory that can be
              written, which loading fills with their values.
    """

    def edit(self, view: ProgramView) -> bool:
        kind = OutputKind.GRADIENT_TO_PARAMETER
        weights = [
            view.placeholders[str(spec.target)]
            for spec, result in view.outputs
            if spec.kind is kind and isinstance(result, Node)
        ]
        if weights:
            specs = [spec for spec, _ in view.outputs]
            output = view.graph.output_node()
            output.args = ((*output.args[0], *weights),)  # type: ignore[misc]
            added = [OutputSpec(OutputKind.TOKEN, TensorArgument(w.name), None) for w in weights]
            view.update_outputs([*specs, *added])
        return bool(weights)


def weights_to_outputs_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """`WeightsToOutputs` on `exported_program` itself, which is returned."""
    WeightsToOutputs()(exported_program)
    return exported_program


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
