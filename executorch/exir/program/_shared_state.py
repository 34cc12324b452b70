"""Buffers that methods share in memory: `MemoryPlanningPass(share_mutable_buffers=True)`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from executorch.exir.delegate import delegate_calls, lowered_module_of
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph_module import all_graph_modules


def shared_buffers(programs: Mapping[str, ExportedProgram]) -> frozenset[str]:
    """Names of the buffers that a method changes. ExportError where another method has one of that
    name that cannot be the same: of another type, shape or first value, or that a backend owns."""
    owner = {
        str(spec.target): method
        for method, program in reversed(list(programs.items()))
        for spec in program.graph_signature.output_specs
        if spec.kind is OutputKind.BUFFER_MUTATION
    }
    for method, program in programs.items():
        for name, tensor in _buffers(program).items():
            if name in owner:
                first = _buffers(programs[owner[name]])[name]
                _require_equal(name, owner[name], first, method, tensor)
        for backend, name in _owned_by_backends(program):
            if name in owner and owner[name] != method:
                raise _refused(
                    f"{backend} took buffer {name} of method {method} as a constant, but method "
                    f"{owner[name]} changes it. Delegate only methods that change it themselves or "
                    f"do not read it: partitioner={{{owner[name]!r}: [...]}} leaves {method} to "
                    f"operators. Or give {method} the buffer's value as an input"
                )
    return frozenset(owner)


def _buffers(program: ExportedProgram) -> dict[str, Tensor]:
    stores = program.constants | program.state_dict
    return {
        str(spec.target): stores[str(spec.target)]
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.BUFFER and str(spec.target) in stores
    }


def _require_equal(name: str, one: str, first: Tensor, other: str, second: Tensor) -> None:
    kinds = [f"{t.dtype} of shape {list(t.shape)}" for t in (first, second)]
    if kinds[0] != kinds[1]:
        raise _refused(
            f"buffer {name} is {kinds[0]} in method {one}, and {kinds[1]} in method {other}"
        )
    same = first is second or first.device.type == "meta" or torch.equal(first, second)
    if not same:
        raise _refused(f"buffer {name} begins with other values in method {one} than in {other}")


def _owned_by_backends(program: ExportedProgram) -> list[tuple[str, str]]:
    """(backend, name of a buffer) of what delegates read themselves and do not change."""
    found = []
    for graph_module in all_graph_modules(program.graph_module):
        for call in delegate_calls(graph_module.graph):
            lowered = lowered_module_of(call, graph_module)
            signature = lowered.original_module.graph_signature
            found += [(lowered.backend_id, name) for name in signature.inputs_to_buffers.values()]
    return found


def _refused(reason: str) -> ExportError:
    return ExportError(ExportErrorType.NOT_SUPPORTED, f"share_mutable_buffers: {reason}")
