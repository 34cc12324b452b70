"""What the bytes of a lowered program are for: constants, delegates, the rest.

`python -m executorch.devtools.size_analysis_tool.size_analysis_tool --etrecord_path RECORD` writes
the same about the programs of a record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from executorch.exir.delegate import delegate_calls, lowered_module_of
from executorch.exir.graph_module import all_graph_modules

Deserializer = Callable[[bytes], dict[str, Any]]

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def generate_model_size_information(
    model: ExportedProgram,
    delegate_deserializers: dict[str, Deserializer] | None = None,
    flatbuffer: bytes | None = None,
) -> dict[str, Any]:
    """Sizes in bytes, the largest first.

    tensor_data         name, numel, dtype, element_size, shape, num_bytes, nn_module_stack of each
                        constant that the graph reads
    delegate_blob_data  name, backend_id, num_bytes and named_data_bytes of each delegate, with what
                        `delegate_deserializers[backend_id](blob)` says about it
    overview            the sums; with `flatbuffer`, the .pte file's bytes, its size and what else
                        is in it
    """
    tensors = sorted(_tensors(model), key=lambda entry: -entry["num_bytes"])
    blobs = sorted(
        _blobs(model, delegate_deserializers or {}), key=lambda entry: -entry["num_bytes"]
    )
    overview = {
        "total_tensor_data_size": sum(entry["num_bytes"] for entry in tensors),
        "total_delegate_blob_data_size": sum(entry["num_bytes"] for entry in blobs),
        "total_named_data_size": sum(entry["named_data_bytes"] for entry in blobs),
    }
    if flatbuffer is not None:
        rest = len(flatbuffer) - sum(overview.values())
        overview |= {"serialization_metadata_size": rest, "model_size": len(flatbuffer)}
    return {"tensor_data": tensors, "delegate_blob_data": blobs, "overview": overview}


def _tensors(program: ExportedProgram) -> list[dict[str, Any]]:
    nodes = {n.name: n for n in program.graph.find_nodes(op="placeholder")}
    found = []
    for spec in program.graph_signature.input_specs:
        if spec.kind not in _STORED:
            continue
        value = program.state_dict.get(spec.target, program.constants.get(spec.target))
        if isinstance(value, torch.Tensor):
            found.append(_tensor(str(spec.target), value, nodes[spec.arg.name]))
    return found


def _tensor(name: str, value: torch.Tensor, placeholder: Node) -> dict[str, Any]:
    return {
        "name": name,
        "numel": value.numel(),
        "dtype": str(value.dtype).removeprefix("torch."),
        "element_size": value.element_size(),
        "shape": list(value.shape),
        "num_bytes": value.numel() * value.element_size(),
        "nn_module_stack": _module_stack(placeholder),
    }


def _module_stack(placeholder: Node) -> str | None:
    """The modules around the first call that reads a constant."""
    for node in (placeholder, *placeholder.users):
        stack = node.meta.get("nn_module_stack")
        if stack:
            return str(stack)
    return None


def _blobs(
    program: ExportedProgram, deserializers: dict[str, Deserializer]
) -> list[dict[str, Any]]:
    found = []
    for graph_module in all_graph_modules(program.graph_module):
        for call in delegate_calls(graph_module.graph):
            lowered = lowered_module_of(call, graph_module)
            store = lowered.named_data_store_output
            entry = {
                "name": str(call.args[0].target),
                "backend_id": lowered.backend_id,
                "num_bytes": len(lowered.processed_bytes),
                "named_data_bytes": sum(len(data) for data in store.buffers) if store else 0,
            }
            if lowered.backend_id in deserializers:
                entry |= deserializers[lowered.backend_id](bytes(lowered.processed_bytes))
            found.append(entry)
    return found


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="size_analysis_tool", description=__doc__)
    parser.add_argument("--etrecord_path", required=True, help="the record, an ETRecord file")
    output = "the JSON file to write; default: %(default)s"
    parser.add_argument("--output_path", default="model_size_information.json", help=output)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Write {name of a program: its sizes} as JSON."""
    from executorch.devtools.etrecord import parse_etrecord

    given = parse_args(arguments)
    record = parse_etrecord(given.etrecord_path)
    edge = record.edge_dialect_program or {}
    programs = {"forward": edge} if isinstance(edge, ExportedProgram) else dict(edge)
    programs |= record.graph_map or {}
    sizes = {name: generate_model_size_information(p) for name, p in programs.items()}
    Path(given.output_path).write_text(json.dumps(sizes, indent=2))


if __name__ == "__main__":
    main()
