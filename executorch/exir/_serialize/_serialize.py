"""The files of an emitted program: the .pte file, and the .ptd files beside it."""

from __future__ import annotations

from typing import Any

from executorch.exir._serialize._cord import Cord, in_memory
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload, DataSerializer
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import Program, Tensor, TensorDataLocation
from executorch.exir.tensor_layout import TensorLayout


def serialize_for_executorch(
    emitter_output: Any,
    config: Any,
    data_serializer: DataSerializer,
    named_data_store: NamedDataStoreOutput | None = None,
) -> tuple[Cord, dict[str, Cord]]:
    """The .pte file, and files of data by their names.

    emitter_output    what `emit_program` returns
    config            ExecutorchBackendConfig, of which alignments and segments count
    data_serializer   writes the files of data
    named_data_store  what backends add to either
    """
    pte = serialize_pte_binary(
        PTEFile(emitter_output.program, emitter_output.mutable_data, named_data_store),
        extract_delegate_segments=config.extract_delegate_segments,
        segment_alignment=config.segment_alignment,
        constant_tensor_alignment=config.constant_tensor_alignment,
        delegate_alignment=config.delegate_alignment,
    )
    alignment = config.constant_tensor_alignment or 16
    payloads = _external(emitter_output, named_data_store, alignment)
    return pte, {name: data_serializer.serialize(payload) for name, payload in payloads.items()}


def _external(
    output: Any, named_data: NamedDataStoreOutput | None, alignment: int
) -> dict[str, DataPayload]:
    """External constants, and what backends keep outside the program, by the file's name."""
    layouts = _layouts(output.program)
    constants = output.external_constant_map or {}
    delegated = named_data.external_data if named_data is not None else {}
    files: dict[str, DataPayload] = {}
    for name in [*constants, *(n for n in delegated if n not in constants)]:
        buffers = list(output.external_constant_buffer)
        entries = {
            fqn: DataEntry(index, alignment, layouts[fqn])
            for fqn, index in constants.get(name, {}).items()
        }
        position: dict[int, int] = {}  # in the store -> in the file
        for key, entry in delegated.get(name, {}).items():
            if key in entries:
                raise ValueError(f"file {name}: the key {key!r} is a constant's and a backend's")
            assert named_data is not None
            index = position.setdefault(entry.buffer_index, len(buffers))
            if index == len(buffers):
                buffers.append(in_memory(named_data.buffers[entry.buffer_index]))
            entries[key] = DataEntry(index, entry.alignment, entry.tensor_layout)
        files[name] = DataPayload(buffers, entries)
    return files


def _layouts(program: Program) -> dict[str, TensorLayout]:
    """Of the external tensors, by name."""
    found: dict[str, TensorLayout] = {}
    for plan in program.execution_plan:
        for value in plan.values:
            tensor = value.val
            if isinstance(tensor, Tensor) and tensor.extra_tensor_info is not None:
                info = tensor.extra_tensor_info
                if info.location is TensorDataLocation.EXTERNAL and info.fully_qualified_name:
                    found[info.fully_qualified_name] = TensorLayout(
                        ScalarType(tensor.scalar_type), tensor.sizes, tensor.dim_order
                    )
    return found
