"""Exported programs as the JSON text of ETRecords, weights apart.

It is version 5.4 of torch.export's schema, with what that leaves out: edge operators by module
path, debug handles in the metadata of nodes, delegate calls with their lowered modules as text, and
the memory of planned programs.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import operator
import re
from collections.abc import Iterator
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize.data_serializer import DataEntry
from executorch.exir.backend.backend_details import copy_program
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.delegate import delegate_calls, executorch_call_delegate
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.scalar_type import ScalarType
from executorch.exir.serde.memory_calls import (
    calls_to_operators,
    fields_to_operators,
    operators_to_calls,
    operators_to_fields,
)
from executorch.exir.serde.serialize import register_edge_operators
from executorch.exir.tensor_layout import TensorLayout
from executorch.exir.torch_internals import (
    ExportedProgramFields,
    SerializeError,
    Verifier,
    dataclass_to_dict,
    dict_to_dataclass,
    set_parts,
    torch_serde,
)

# What reading a damaged text raises.
_DAMAGE = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    AssertionError,
    RecursionError,
    SerializeError,
)
_EDGE = "executorch.exir.dialects.edge.ops."
_HIGHER_ORDER = "torch.ops.higher_order."
_DELEGATE_CALL = f"{_HIGHER_ORDER}executorch_call_delegate"


class _NoRules:
    """A verifier for programs whose delegate calls take texts."""

    dialect = ""

    def check(self, program: ExportedProgram) -> None:
        pass


class _Planned(Verifier):
    """A verifier of programs with operators that write into memory."""

    dialect = "EXECUTORCH_PLANNED"

    def __init__(self) -> None:
        self.dialect = "TRAINING"  # the one in which torch allows that

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        return (*super().allowed_op_types(), EdgeOpOverload)


def program_to_json(program: ExportedProgram) -> bytes:
    """Everything of a program but state, constants and example inputs."""
    register_edge_operators()
    copied = copy_program(program)
    for gm in all_graph_modules(copied.graph_module):
        _lowered_modules_to_text(gm)
        calls_to_operators(gm.graph)
    dialects = [verifier.dialect for verifier in program.verifiers]
    set_parts(copied, verifiers=[_NoRules])
    stored = (
        torch_serde.ExportedProgramSerializer()
        .serialize(
            copied,
            serialize_state_dict=False,
            serialize_constants=False,
            serialize_example_inputs=False,
        )
        .exported_program
    )
    stored.verifiers = dialects
    fields: dict[str, Any] = dataclass_to_dict(stored)
    for graph, gm in _graphs(fields["graph_module"]["graph"], copied.graph_module):
        nodes = {node.name: node for node in gm.graph.nodes}
        for node in graph["nodes"]:
            node["target"] = _operator_to_path(node["target"])
            handle = nodes[node["name"]].meta.get("debug_handle")
            if handle is not None:
                node["metadata"]["debug_handle"] = str(handle)
        operators_to_fields(graph)
    _to_schema_5(fields)
    return json.dumps(fields, cls=torch_serde.EnumEncoder, allow_nan=False).encode()


def program_from_json(
    text: bytes,
    state_dict: dict[str, torch.Tensor],
    constants: dict[str, Any],
    example_inputs: Any = None,
) -> ExportedProgram:
    """What `program_to_json` wrote; ValueError where the text is no program."""
    register_edge_operators()
    try:
        fields = json.loads(text)
        _from_schema_5(fields)
        dialects = fields["verifiers"]
        handles: dict[str, Any] = {}
        for node in _stored_nodes(fields["graph_module"]["graph"]):
            node["target"] = _operator_from_path(node["target"])
            if fields_to_operators(node):
                fields["verifiers"] = [_Planned.dialect]
            if "debug_handle" in node["metadata"]:
                handles[_name_of(node)] = json.loads(
                    node["metadata"]["debug_handle"].translate(_TUPLE_TO_LIST)
                )
            if node["target"] == _DELEGATE_CALL:
                for argument in node["inputs"]:
                    argument["name"] = ""
        stored = dict_to_dataclass(ExportedProgramFields, fields)
        program: ExportedProgram = torch_serde.ExportedProgramDeserializer().deserialize(
            stored,
            state_dict,
            constants,
            example_inputs or ((), {}),
            _unsafe_skip_version_check=True,
        )
        verifiers = [torch_serde.load_verifier(dialect) for dialect in dialects]
        for gm in all_graph_modules(program.graph_module):
            operators_to_calls(gm.graph)
    except _DAMAGE as error:
        raise ValueError(f"no serialized exported program: {_last_line(error)}") from error
    for gm in all_graph_modules(program.graph_module):
        for graph_node in gm.graph.nodes:
            _restore_handle(graph_node, handles)
        _lowered_modules_from_text(gm)
    set_parts(program, verifiers=verifiers)
    return program


_TUPLE_TO_LIST = str.maketrans("()", "[]")


def _last_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error) else ''}"


def _restore_handle(node: Node, handles: dict[str, Any]) -> None:
    """A node's own handle; results of one with several share its."""
    handle = handles.get(node.name)
    if handle is None and node.op == "call_function" and node.args:
        source = node.args[0]
        if "getitem" in str(node.target) and isinstance(source, Node):
            handle = source.meta.get("debug_handle")
    if handle is not None:
        node.meta["debug_handle"] = tuple(handle) if isinstance(handle, list) else handle


def _graphs(graph: dict[str, Any], gm: GraphModule) -> Iterator[tuple[dict[str, Any], GraphModule]]:
    """Stored graphs, outermost first, with the graph modules they were made of."""
    yield graph, gm
    for argument in _graph_arguments(graph):
        yield from _graphs(argument["graph"], getattr(gm, argument["name"]))


def _graph_arguments(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for node in graph["nodes"]:
        for argument in node["inputs"]:
            if "as_graph" in argument["arg"]:
                yield argument["arg"]["as_graph"]


def _all_graphs(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield graph
    for argument in _graph_arguments(graph):
        yield from _all_graphs(argument["graph"])


def _stored_nodes(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in _all_graphs(graph):
        yield from each["nodes"]


# ---- versions of the schema ----


def _to_schema_5(fields: dict[str, Any]) -> None:
    """Leave out what version 5.4 does not know; its readers refuse it."""
    fields["schema_version"] = {"major": 5, "minor": 4}
    fields["dialect"] = ""
    for name in ("torch_version", "guards_code"):
        fields.pop(name, None)
    module = fields["graph_module"]
    for name in ("metadata", "treespec_namedtuple_fields"):
        module.pop(name, None)
    for entry in module["module_call_graph"]:
        if entry["signature"] is not None:
            entry["signature"].pop("forward_arg_names", None)
    for graph in _all_graphs(module["graph"]):
        graph.pop("sym_float_values", None)
        for value in graph["tensor_values"].values():
            _drop_no_index(value["device"])
        calls = 0
        for node in graph["nodes"]:
            _node_to_schema_5(node)
            if node["target"] == _DELEGATE_CALL:
                for i, argument in enumerate(node["inputs"]):
                    argument["name"] = f"delegate_arg_{i - 1}" if i else f"lowered_module_{calls}"
                calls += 1
    for size in _expressions(fields):
        size["expr_str"] = str(sympy.sympify(size["expr_str"]))


def _node_to_schema_5(node: dict[str, Any]) -> None:
    single = node.pop("is_hop_single_tensor_return", None)
    for argument in node["inputs"]:
        argument.pop("kind", None)
        if "as_device" in argument["arg"]:
            _drop_no_index(argument["arg"]["as_device"])
    outputs = node["outputs"]
    in_tuple = node["target"].startswith(_HIGHER_ORDER) and not single
    if in_tuple and len(outputs) == 1 and "as_tensor" in outputs[0]:
        node["outputs"] = [{"as_tensors": [outputs[0]["as_tensor"]]}]


def _drop_no_index(device: dict[str, Any]) -> None:
    if device.get("index") is None:
        device.pop("index", None)


_SYMBOL = re.compile(r"\b([su])(\d+)\b")


def _from_schema_5(fields: dict[str, Any]) -> None:
    """There, a tuple of one result is a list, and expressions do not say what their symbols are."""

    def symbol(match: re.Match[str]) -> str:
        positive = "positive=True, " if match[1] == "s" else ""
        return f"Symbol('{match[0]}', {positive}integer=True)"

    for node in _stored_nodes(fields["graph_module"]["graph"]):
        outputs = node["outputs"]
        if node["target"].startswith(_HIGHER_ORDER) and len(outputs) == 1:
            listed = outputs[0].get("as_tensors")
            node["is_hop_single_tensor_return"] = listed is None or len(listed) != 1
            if listed is not None and len(listed) == 1:
                node["outputs"] = [{"as_tensor": listed[0]}]
    for size in _expressions(fields):
        if "Symbol(" not in size["expr_str"]:
            size["expr_str"] = _SYMBOL.sub(symbol, size["expr_str"])


def _expressions(value: Any) -> Iterator[dict[str, Any]]:
    """All {"expr_str": text, ...} below a value."""
    if isinstance(value, dict):
        if isinstance(value.get("expr_str"), str):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _expressions(item)


# ---- names ----


def _name_of(node: dict[str, Any]) -> str:
    """Older files name results only."""
    if node.get("name"):
        return str(node["name"])
    for output in node["outputs"]:
        for value in output.values():
            if isinstance(value, dict) and "name" in value:
                return str(value["name"])
    return ""


def _operator_to_path(target: str) -> str:
    return _EDGE + target.removeprefix("#edge:") if target.startswith("#edge:") else target


def _operator_from_path(target: str) -> str:
    return "#edge:" + target.removeprefix(_EDGE) if target.startswith(_EDGE) else target


# ---- lowered modules ----


def _lowered_modules_to_text(gm: GraphModule) -> None:
    """Put the text of a lowered module in the place of the node that reads it."""
    for call in delegate_calls(gm.graph):
        reader: Any = call.args[0]
        lowered = getattr(gm, str(reader.target))
        call.args = (json.dumps(_lowered_fields(lowered)), *call.args[1:])
        if isinstance(call.meta["val"], list):
            call.meta["val"] = tuple(call.meta["val"])
        if not reader.users:
            gm.graph.erase_node(reader)


def _lowered_modules_from_text(gm: GraphModule) -> None:
    for i, call in enumerate(delegate_calls(gm.graph)):
        fields = json.loads(str(call.args[0]))
        name = f"lowered_module_{i}"
        lowered = _lowered_from_fields(fields)
        if any(user.target is operator.getitem for user in call.users):
            output = lowered.original_module.graph.output_node()
            output.args = (list(output.args[0]),)  # type: ignore[arg-type]
        setattr(gm, name, lowered)
        with gm.graph.inserting_before(call):
            reader = gm.graph.get_attr(name)
        call.args = (reader, *call.args[1:])
        assert call.target is executorch_call_delegate
    gm.recompile()


def _lowered_fields(lowered: LoweredBackendModule) -> dict[str, Any]:
    original = lowered.original_module
    return {
        "backend_id": lowered.backend_id,
        "processed_bytes": _text(lowered.processed_bytes),
        "compile_specs": [
            {"key": spec.key, "value": _text(spec.value)} for spec in lowered.compile_specs
        ],
        "original_module": json.loads(program_to_json(original)),
        "original_state_dict": _saved(original.state_dict),
        "original_constants": _saved(original.constants),
        "named_data_store": _named_data_text(lowered.named_data_store_output),
        "debug_handle_map": list((lowered.meta.get("debug_handle_map") or {}).items()),
    }


def _lowered_from_fields(fields: dict[str, Any]) -> LoweredBackendModule:
    original = program_from_json(
        json.dumps(fields["original_module"]).encode(),
        _loaded(fields["original_state_dict"]),
        _loaded(fields["original_constants"]),
    )
    specs = [CompileSpec(s["key"], _bytes(s["value"])) for s in fields["compile_specs"]]
    lowered = LoweredBackendModule(
        original,
        fields["backend_id"],
        _bytes(fields["processed_bytes"]),
        specs,
        _named_data(fields.get("named_data_store")),
    )
    handles = fields.get("debug_handle_map")
    if handles:
        lowered.meta["debug_handle_map"] = {key: tuple(value) for key, value in handles}
    return lowered


def _named_data_text(data: NamedDataStoreOutput | None) -> str | None:
    if data is None:
        return None
    entries = {key: dataclasses.asdict(entry) for key, entry in data.pte_data.items()}
    external = {
        file: {key: dataclasses.asdict(entry) for key, entry in keys.items()}
        for file, keys in data.external_data.items()
    }
    return json.dumps(
        {
            "buffers": [_text(buffer) for buffer in data.buffers],
            "pte_data": entries,
            "external_data": external,
        }
    )


def _named_data(text: str | None) -> NamedDataStoreOutput | None:
    if not text:
        return None
    fields = json.loads(text)

    def entry(stored: dict[str, Any]) -> DataEntry:
        layout = stored.get("tensor_layout")
        if layout is not None:
            kind = ScalarType(layout["scalar_type"])
            layout = TensorLayout(kind, layout["sizes"], layout["dim_order"])
        return DataEntry(stored["buffer_index"], stored["alignment"], layout)

    return NamedDataStoreOutput(
        [_bytes(buffer) for buffer in fields["buffers"]],
        {key: entry(stored) for key, stored in fields["pte_data"].items()},
        {
            file: {key: entry(stored) for key, stored in keys.items()}
            for file, keys in fields["external_data"].items()
        },
    )


def _text(data: Any) -> str:
    return base64.b64encode(bytes(data)).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _saved(tensors: Any) -> str:
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    return _text(buffer.getvalue())


def _loaded(text: str) -> Any:
    return torch.load(io.BytesIO(_bytes(text)), weights_only=True)
