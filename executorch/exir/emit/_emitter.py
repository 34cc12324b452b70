"""Emission of one method: values, operators and instructions from a planned graph."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir import memory, schema
from executorch.exir._serialize._data_pool import DataPool
from executorch.exir.emit._delegate_operands import check_operands
from executorch.exir.emit._values import Index, ValueTable, argument_kinds
from executorch.exir.error import ExportError, ExportErrorType, InternalError
from executorch.exir.graph.operator_kind import (
    is_delegate_call,
    is_out_variant,
    is_symbolic,
    overload_of,
)
from executorch.exir.graph.source_line import frames, source_line
from executorch.exir.passes.debug_handle_generator_pass import debug_handles
from executorch.exir.schema import Instruction, KernelCall
from executorch.exir.tensor import TensorSpec, make_allocation_info, make_tensor_value
from executorch.exir.torch_internals import HigherOrderOperator, OpOverload, schema_of


@dataclass
class ProgramState:
    """What the methods of a program share."""

    constants: DataPool = field(default_factory=DataPool)
    mutable_data: DataPool = field(default_factory=DataPool)
    external: DataPool = field(default_factory=DataPool)
    # file name to name of the tensor to index in `external`
    external_map: dict[str, dict[str, int]] = field(default_factory=dict)
    delegate_data: list[schema.BackendDelegateInlineData] = field(default_factory=list)
    delegate_index: dict[bytes, int] = field(default_factory=dict)


class GraphEmitter:
    """Emits graphs into one chain of instructions.

    `results` maps a node to the index of its value, or to a list of them. Sub-graphs of control
    flow are emitted into the same chain, their placeholders bound to values of the outer graph.
    """

    def __init__(self, state: ProgramState) -> None:
        self.state = state
        self.table = ValueTable()
        self.results: dict[Node, Any] = {}
        self.instructions: list[Instruction] = []
        self.operators: list[schema.Operator] = []
        self.delegates: list[schema.BackendDelegate] = []
        # For each instruction the nodes it stems from: first those of the control flow around it,
        # outermost first, then its own.
        self.sources: list[tuple[Node, ...]] = []
        self.lowered: dict[int, Any] = {}  # by delegate call
        self.debug_handles: dict[int, Any] = {}
        self.delegate_maps: dict[int, Any] = {}
        self.num_outs: dict[int, int] = {}
        self._nodes: tuple[Node, ...] = ()
        self._operator_index: dict[tuple[str, str], int] = {}
        # Values that lie where their spec says, for as long as the program runs.
        self._spec_at: dict[int, TensorSpec] = {}

    # ---- graphs ----

    def emit_nodes(self, graph_module: GraphModule) -> None:
        """All nodes but placeholders, which are bound before, and the output."""
        for node in graph_module.graph.nodes:
            if node.op == "call_function":
                outer, self._nodes = self._nodes, (*self._nodes, node)
                try:
                    self._call(node, graph_module)
                except (TypeError, ValueError) as error:
                    raise ExportError(
                        ExportErrorType.NOT_SUPPORTED,
                        f"{node} ({node.target}): {error}\n  in your model: {source_line(node)}",
                    ) from error
                self._nodes = outer
            elif node.op == "get_attr":
                self._get_attr(node, graph_module)

    def _get_attr(self, node: Node, graph_module: GraphModule) -> None:
        value: Any = graph_module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            spec = node.meta["spec"]
            index = self.state.constants.add(value, spec.dim_order)
            self.results[node] = self.tensor(spec, constant=index)

    def _call(self, node: Node, graph_module: GraphModule) -> None:
        op = overload_of(node.target)
        if node.target is memory.alloc:
            self.results[node] = self._allocate(node.meta["spec"])
        elif node.target is memory.view:
            self.results[node] = self._view(node)
        elif node.target is memory.free:
            self._free(node)
        elif node.target is operator.getitem:
            self.results[node] = self.results[node.args[0]][node.args[1]]  # type: ignore
        elif is_delegate_call(node):
            self._delegate_call(node, graph_module)
        elif isinstance(node.target, HigherOrderOperator):
            from executorch.exir.emit._control_flow import emit_control_flow

            emit_control_flow(self, node, graph_module)
        elif op is not None:
            self.results[node] = self._kernel_call(node, op)
        else:
            raise TypeError(
                "neither an operator of the runtime nor a call that a pass of to_executorch removes"
            )

    # ---- values ----

    def tensor(self, spec: TensorSpec, constant: int = 0, state: int = 0) -> Index:
        """The value of a spec: constant number `constant`, or memory as planned, with the initial
        content number `state`."""
        place = None
        if not constant and spec.mem_id is not None and spec.mem_offset is not None:
            place = make_allocation_info(spec.mem_id, spec.mem_offset)
        value = make_tensor_value(constant or state, place, spec)
        index = Index(self.table.add(value))
        self._spec_at[index] = spec
        return index

    def moves(self, index: int) -> None:
        """The value's memory is decided at run time from here on."""
        self._spec_at.pop(index, None)

    def _allocate(self, spec: Any) -> Any:
        if isinstance(spec, TensorSpec):
            return self.tensor(spec)
        return [self._allocate(part) for part in spec]

    def argument(self, value: Any, kind: str = "") -> Index:
        """The index of an argument's value."""
        if isinstance(value, Node):
            found = self._result_of(value)
            return Index(self.table.add_list(found, kind)) if isinstance(found, list) else found
        if isinstance(value, (list, tuple)):
            items = [self._result_of(v) if isinstance(v, Node) else v for v in value]
            return Index(self.table.add_list(items, kind))
        if kind.startswith("List[") and isinstance(value, (int, float)):
            return Index(self.table.add_list([value], kind))
        return Index(self.table.add_literal(value, kind))

    def _result_of(self, node: Node) -> Any:
        if node not in self.results:
            raise ValueError(
                f"its argument {node} is not computed before it; a pass moved one of both"
            )
        return self.results[node]

    def _view(self, node: Node) -> Index:
        """Another name for planned or constant memory of fixed shape needs no instruction."""
        base = self.results[node.args[0]]  # type: ignore[index]
        spec = node.meta["spec"]
        source = self.table.values[base].val
        if not isinstance(source, schema.Tensor):
            raise InternalError(f"{node}: a view of {source}")
        lies = self._spec_at.get(base)
        external = source.extra_tensor_info is not None and (
            source.extra_tensor_info.location is schema.TensorDataLocation.EXTERNAL
        )
        known = source.allocation_info is not None or source.data_buffer_idx > 0
        if (
            lies is node.args[0].meta["spec"]  # type: ignore[union-attr]
            and spec.is_static_shape_tensor
            and known
            and not external
        ):
            if lies.nbytes() != spec.nbytes():
                raise InternalError(f"{node}: {spec} is no view of {lies}")
            alias = make_tensor_value(0, source.allocation_info, spec)
            if source.allocation_info is None:
                alias.data_buffer_idx = source.data_buffer_idx
            index = Index(self.table.add(alias))
            self._spec_at[index] = spec
            return index
        size = self.argument(node.args[1], "List[int]")
        # An output of the method is known to have its base's memory before the first call.
        is_output = any(user.op == "output" for user in node.users)
        place = source.allocation_info if is_output and lies is not None else None
        index = Index(self.table.add(make_tensor_value(0, place, spec)))
        self.kernel("executorch_prim::et_view", "default", [base, size, index])
        return index

    def _free(self, node: Node) -> None:
        spec = node.args[0]
        index = next(i for i, s in self._spec_at.items() if s is spec)
        self.append(schema.FreeCall(index))

    # ---- instructions ----

    def append(self, call: schema.InstructionArguments) -> int:
        """Adds an instruction, returns its index."""
        self.instructions.append(Instruction(call))
        self.sources.append(self._nodes)
        return len(self.instructions) - 1

    def kernel(self, name: str, overload: str, args: list[int]) -> int:
        key = (name, overload)
        if key not in self._operator_index:
            self._operator_index[key] = len(self.operators)
            self.operators.append(schema.Operator(name, overload))
        return self.append(KernelCall(self._operator_index[key], [int(a) for a in args]))

    def _kernel_call(self, node: Node, op: OpOverload) -> Any:
        indices: list[int] = []
        written: list[Any] = []  # the results: out arguments, else what the operator writes
        has_out = is_out_variant(op)
        out_lists = False
        kinds = argument_kinds(op)
        for i, argument in enumerate(schema_of(op).arguments):
            if i < len(node.args):
                value = node.args[i]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            elif argument.has_default_value():
                value = argument.default_value
            else:
                raise TypeError(f"argument {argument.name} is missing")
            indices.append(self.argument(value, kinds[i]))
            is_written = argument.alias_info is not None and argument.alias_info.is_write
            if argument.is_out if has_out else is_written:
                written.append(self.results[value])  # type: ignore[index]
                out_lists = out_lists or kinds[i].startswith("List")
        result = self._result(node, op, written)
        if out_lists or len(written) > 1:
            indices.append(self.table.add_list(list(result), "List[Tensor]"))
        else:
            indices.append(result)
        name, overload = schema_of(op).name, schema_of(op).overload_name
        instruction = self.kernel(name, overload, indices)
        self._note_debug_handle(node, instruction)
        return result

    def _result(self, node: Node, op: OpOverload, written: list[Any]) -> Any:
        """Index or indices of what the operator gives: what it wrote, or a new number."""
        if written:
            return written[0] if len(written) == 1 else written
        if not is_symbolic(op) and len(schema_of(op).returns) != 1:
            raise TypeError("writes no argument and does not return one number")
        return Index(self.table.add_number(_sample_of(op)))

    def _delegate_call(self, node: Node, graph_module: GraphModule) -> None:
        reference = node.args[0]
        lowered: Any = getattr(graph_module, str(reference.target))  # type: ignore[union-attr]
        check_operands(node, lowered)
        blob = bytes(lowered.processed_bytes)
        state = self.state
        if blob not in state.delegate_index:
            state.delegate_index[blob] = len(state.delegate_data)
            state.delegate_data.append(schema.BackendDelegateInlineData(blob))
        location = schema.BackendDelegateDataReference(
            schema.DataLocation.INLINE, state.delegate_index[blob]
        )
        self.delegates.append(
            schema.BackendDelegate(lowered.backend_id, location, list(lowered.compile_specs))
        )
        args = [self.argument(a) for a in node.args[1:]]
        values: Any = node.meta.get("val")
        specs: Any = node.meta.get("spec")
        single = isinstance(specs, TensorSpec)
        outputs = [
            self.tensor(s) if isinstance(s, TensorSpec) else Index(self.table.add_number(v))
            for s, v in ([(specs, values)] if single else zip(specs, values, strict=True))
        ]
        call = schema.DelegateCall(len(self.delegates) - 1, [int(a) for a in args + outputs])
        instruction = self.append(call)
        self.results[node] = outputs[0] if single else outputs
        original = getattr(lowered, "original_module", None)
        self.debug_handles[instruction] = [
            handle
            for n in (original.graph.nodes if original is not None else ())
            if n.op == "call_function"
            for handle in debug_handles(n)
        ]
        meta = getattr(lowered, "meta", None) or {}
        self.delegate_maps[instruction] = {
            "name": lowered.backend_id,
            "delegate_map": meta.get("debug_handle_map"),
        }
        self.num_outs[instruction] = len(outputs)
        self.lowered[instruction] = lowered

    def _note_debug_handle(self, node: Node, instruction: int) -> None:
        if "debug_handle" in node.meta:
            self.debug_handles[instruction] = node.meta["debug_handle"]
            node.meta["debug_handle"] = instruction

    def chain(self, with_traces: bool) -> schema.Chain:
        traces = [_frame_list(nodes) for nodes in self.sources] if with_traces else None
        return schema.Chain([], [], self.instructions, traces)


def _frame_list(nodes: tuple[Node, ...]) -> schema.FrameList:
    found = frames(nodes[-1]) if nodes else ()
    return schema.FrameList([schema.Frame(*frame) for frame in found])


def _sample_of(op: OpOverload) -> Any:
    """A number of the type that the operator returns."""
    kind = str(schema_of(op).returns[0].type)
    if kind in ("int", "SymInt", "number"):
        return 0
    if kind in ("bool", "float"):
        return True if kind == "bool" else 0.0
    raise TypeError(f"returns a {kind}, but writes into no out argument")


def with_name(spec: TensorSpec, name: str, location: schema.TensorDataLocation) -> None:
    """Let the program store the tensor's name."""
    info = spec.extra_tensor_info or schema.ExtraTensorInfo()
    spec.extra_tensor_info = replace(info, fully_qualified_name=name, location=location)
