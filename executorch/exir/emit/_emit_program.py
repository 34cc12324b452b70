from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
)
from torch.fx import Node

from executorch.exir import schema
from executorch.exir._serialize._data_pool import DataPool, tensor_bytes
from executorch.exir.emit._container_text import container_text
from executorch.exir.emit._debug_identity import DebugIdentity
from executorch.exir.emit._emitter import GraphEmitter, ProgramState, with_name
from executorch.exir.emit._output_names import output_names
from executorch.exir.emit._values import Index
from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.passes.external_constants_pass import CONSTANT_TAG
from executorch.exir.passes.init_mutable_pass import INIT_BUFFER
from executorch.exir.passes.weights_to_outputs_pass import training_methods
from executorch.exir.schema import (
    Buffer,
    Bytes,
    ExecutionPlan,
    Program,
    TensorDataLocation,
    bytes_of,
)
from executorch.exir.tensor import TensorSpec
from executorch.exir.version import EXECUTORCH_SCHEMA_VERSION

_DATA_KINDS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_RESULTS = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)


@dataclass
class EmitterOutput:
    """A program and what belongs to it but not into the file.

    debug_handle_map                  method to instruction to debug handle(s) of the graph
    method_to_delegate_debug_id_map   method to delegate call to the backend's own map
    instruction_id_to_num_outs_map    method to delegate call to number of results
    mutable_data                      initial states; the index 0 is reserved
    external_constant_buffer          bytes for .ptd files
    external_constant_map             file name to tensor name to index in that list
    debug_identity                    where instructions come from, as the file stores it
    """

    program: Program
    debug_handle_map: dict[str, dict[int, Any]]
    method_to_delegate_debug_id_map: dict[str, dict[int, Any]]
    instruction_id_to_num_outs_map: dict[str, dict[int, int]]
    mutable_data: list[Buffer] | None
    external_constant_buffer: list[Any]
    external_constant_map: dict[str, dict[str, int]] | None
    debug_identity: DebugIdentity = field(default_factory=DebugIdentity)

    def __getstate__(self) -> dict[str, Any]:
        """What copies are made of: borrowed bytes cannot be copied as they are."""
        return vars(self) | {
            "external_constant_buffer": [bytes_of(data) for data in self.external_constant_buffer]
        }


# Buffers that a program was given by exir/incremental: by name their state is saved and restored.
STATE_PREFIX = "incremental_"


def emit_program(
    methods: ExportedProgram | dict[str, ExportedProgram],
    emit_stacktrace: bool = False,
    prim_getters: dict[str, Any] | None = None,
    emit_mutable_buffer_names: bool = False,
) -> EmitterOutput:
    """The Program of planned methods, in ascending order of their names, and of `prim_getters`,
    values that are asked for by calling a method without arguments.

    Equal programs give equal results, down to the order of everything.
    """
    if isinstance(methods, ExportedProgram):
        methods = {"forward": methods}
    getters = prim_getters or {}
    if both := methods.keys() & getters.keys():
        raise ValueError(f"{sorted(both)} are methods and constant methods at once")
    state = ProgramState()
    output = EmitterOutput(
        Program(EXECUTORCH_SCHEMA_VERSION, [], [], [], [], schema.SubsegmentOffsets(0, [])),
        {},
        {},
        {},
        None,
        [],
        None,
        DebugIdentity(),
    )
    for name in sorted(methods):
        emitter = MethodEmitter(name, methods[name], state, emit_mutable_buffer_names)
        output.program.execution_plan.append(emitter.emit(emit_stacktrace))
        output.debug_identity.add_method(name, emitter)
        output.debug_handle_map[name] = emitter.debug_handles
        output.method_to_delegate_debug_id_map[name] = emitter.delegate_maps
        output.instruction_id_to_num_outs_map[name] = emitter.num_outs
    for name in sorted(methods):
        for getter, values in training_methods(name, methods[name].graph_signature).items():
            plan = _constant_method(getter, values, state)
            output.program.execution_plan.append(plan)
    for name, value in getters.items():
        output.program.execution_plan.append(_constant_method(name, value, state))
    output.program.constant_buffer = [Buffer(entry) for entry in state.constants.entries]
    output.program.backend_delegate_data = state.delegate_data
    if len(state.mutable_data.entries) > 1:
        output.mutable_data = [Buffer(entry) for entry in state.mutable_data.entries]
    output.external_constant_buffer = list(state.external.entries[1:])
    output.external_constant_map = state.external_map or None
    return output


class MethodEmitter(GraphEmitter):
    """Emits one method: its inputs by the signature, its graph, its outputs."""

    def __init__(
        self, name: str, program: ExportedProgram, state: ProgramState, buffer_names: bool
    ) -> None:
        super().__init__(state)
        self.name = name
        self.program = program
        self.buffer_names = buffer_names
        self.inputs: list[int] = []
        self.input_names: list[str] = []
        self.output_names: list[str] = []
        self.has_state = False  # a buffer that calls may change

    def emit(self, with_traces: bool) -> ExecutionPlan:
        graph_module = self.program.graph_module
        specs = {_argument_name(s): s for s in self.program.graph_signature.input_specs}
        for node in graph_module.graph.find_nodes(op="placeholder"):
            try:
                self.results[node] = self._input(node, specs[node.name])
            except (TypeError, ValueError) as error:
                raise ExportError(
                    ExportErrorType.NOT_SUPPORTED, f"method {self.name}, input {node}: {error}"
                ) from error
        self.emit_nodes(graph_module)
        outputs = self._outputs(graph_module.graph.output_node())
        call_spec = self.program.call_spec
        return ExecutionPlan(
            name=self.name,
            container_meta_type=schema.ContainerMetadata(
                container_text(call_spec.in_spec), container_text(call_spec.out_spec)
            ),
            values=self.table.values,
            inputs=self.inputs,
            outputs=outputs,
            chains=[self.chain(with_traces)],
            operators=self.operators,
            delegates=self.delegates,
            non_const_buffer_sizes=list(graph_module.meta["non_const_buffer_sizes"]),
            non_const_buffer_device=graph_module.meta.get("non_const_buffer_device"),
        )

    def _input(self, node: Node, spec: InputSpec) -> int:
        if spec.kind in _DATA_KINDS:
            return self._data(node, spec)
        if spec.kind is not InputKind.USER_INPUT:
            raise TypeError(f"{spec.kind} cannot be stored in a program")
        if isinstance(node.meta.get("spec"), TensorSpec):
            index: int = self.tensor(node.meta["spec"])
        elif isinstance(spec.arg, ConstantArgument):
            index = self.table.add_literal(spec.arg.value)
        else:
            raise TypeError(
                "a number that differs from call to call cannot be an input; pass a tensor and "
                "read it with .item()"
            )
        self.inputs.append(int(index))
        self.input_names.append(node.name)
        return Index(index)

    def _data(self, node: Node, spec: InputSpec) -> Index:
        name = str(spec.target)
        tensor = self._stored(name)
        planned: TensorSpec = node.meta["spec"]
        if CONSTANT_TAG in node.meta:
            return self._external(node.meta[CONSTANT_TAG], name, tensor, planned)
        if planned.const:
            data = _checked_bytes(tensor, planned)
            return self.tensor(planned, constant=self.state.constants.add_bytes(data))
        self.has_state = True
        if self.buffer_names or planned.mem_id is None or name.startswith(STATE_PREFIX):
            with_name(planned, name, TensorDataLocation.SEGMENT)
        return self.tensor(planned, state=self._initial_state(node, tensor, planned))

    def _stored(self, name: str) -> torch.Tensor:
        found = self.program.state_dict.get(name)
        if found is None:
            found = self.program.constants.get(name)
        if not isinstance(found, torch.Tensor):
            raise ValueError(f"the exported program has no tensor named {name!r}")
        return found

    def _initial_state(self, node: Node, tensor: torch.Tensor, spec: TensorSpec) -> int:
        """Planned memory starts as zeros, so only other states need to be stored."""
        from executorch.exir import _native

        if spec.mem_id is None:
            return 0  # whoever provides the memory provides its content
        data = _checked_bytes(tensor, spec)
        if _native.all_zero(data) and not node.meta.get(INIT_BUFFER):
            return 0
        return self.state.mutable_data.add_bytes(data)

    def _external(self, file: str, name: str, tensor: torch.Tensor, spec: TensorSpec) -> Index:
        index = self.state.external.add_bytes(_checked_bytes(tensor, spec))
        self.state.external_map.setdefault(file, {})[name] = index - 1  # of the list given out
        with_name(spec, name, TensorDataLocation.EXTERNAL)
        value = self.tensor(spec)
        self.moves(value)  # a view of it needs the address that loading finds
        return value

    def _outputs(self, output: Node) -> list[int]:
        kinds = [s.kind for s in self.program.graph_signature.output_specs]
        results = list(output.args[0])  # type: ignore[arg-type]
        names = iter(output_names(self.program.call_spec.out_spec))
        outputs = []
        for result, kind in zip(results, kinds, strict=True):
            if kind in _MUTATIONS:
                continue
            outputs.append(int(self.argument(result)))
            self.output_names.append(next(names, "") if kind in _RESULTS else "")
        return outputs


def _argument_name(spec: InputSpec) -> str:
    return str(spec.arg.name)  # type: ignore[union-attr]


def _checked_bytes(tensor: torch.Tensor, spec: TensorSpec) -> Bytes:
    data = tensor_bytes(tensor, spec.dim_order)
    if data.nbytes != spec.nbytes() or tensor.dtype != spec.dtype:
        raise ValueError(
            f"the stored tensor is {tensor.dtype} {list(tensor.shape)}, {data.nbytes} bytes, but "
            f"the graph expects {spec.dtype} {list(spec.shape)}, {spec.nbytes()} bytes"
        )
    return data


def _constant_method(name: str, value: Any, state: ProgramState) -> ExecutionPlan:
    from executorch.exir.torch_internals import tree_flatten

    leaves, tree = tree_flatten(value)
    emitter = GraphEmitter(state)
    outputs = []
    for leaf in leaves:
        try:
            outputs.append(_leaf(emitter, leaf, state.constants))
        except (TypeError, ValueError) as error:
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED, f"constant method {name}: {error}"
            ) from error
    return ExecutionPlan(
        name=name,
        container_meta_type=schema.ContainerMetadata("", container_text(tree)),
        values=emitter.table.values,
        inputs=[],
        outputs=outputs,
        chains=[emitter.chain(False)],
        operators=[],
        delegates=[],
        non_const_buffer_sizes=[0],
    )


def _leaf(emitter: GraphEmitter, leaf: Any, constants: DataPool) -> int:
    if not isinstance(leaf, torch.Tensor):
        return emitter.table.add_literal(leaf)
    if leaf.layout is not torch.strided:
        raise TypeError(f"a {leaf.layout} tensor cannot be in a program; use a strided one")
    spec = TensorSpec.from_tensor(leaf.detach().contiguous(), const=True)
    return int(emitter.tensor(spec, constant=constants.add(leaf, spec.dim_order)))
