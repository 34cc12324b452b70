"""Which weights a training program returns."""

from __future__ import annotations

from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    TensorArgument,
)


def updated_weights(signature: ExportGraphSignature) -> dict[str, str]:
    """Placeholder -> name of the weights that `weights_to_outputs_pass` returns, in that order."""
    names = {
        s.arg.name: str(s.target)  # type: ignore[union-attr]
        for s in signature.input_specs
        if s.kind is InputKind.PARAMETER
    }
    returned = [
        s.arg.name
        for s in signature.output_specs
        if s.kind is OutputKind.TOKEN and isinstance(s.arg, TensorArgument)
    ]
    return {name: names[name] for name in returned if name in names}
