"""Programs and graphs as text for people."""

from __future__ import annotations

import dataclasses
import enum
import sys
from typing import Any, TextIO

from torch.fx import Graph, Node

from executorch.exir import schema
from executorch.exir.schema import FrameList, Program
from executorch.exir.tensor import get_scalar_type

_RED, _RESET = "\x1b[31m", "\x1b[0m"
_BYTES_SHOWN = 16


def pretty_print(obj: Any, indent: int = 0, out: TextIO | None = None) -> None:
    """Print a dataclass as nested fields; long byte strings by length."""
    stream = out or sys.stdout
    _pretty(obj, indent, stream)
    stream.write("\n")


def _pretty(obj: Any, indent: int, out: TextIO) -> None:
    inner = " " * (indent + 2)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        out.write(f"{type(obj).__name__}(\n")
        for field in dataclasses.fields(obj):
            out.write(f"{inner}{field.name}=")
            _pretty(getattr(obj, field.name), indent + 2, out)
            out.write(",\n")
        out.write(" " * indent + ")")
    elif isinstance(obj, (list, tuple)) and any(map(dataclasses.is_dataclass, obj)):
        out.write("[\n")
        for i, item in enumerate(obj):
            out.write(inner)
            _pretty(item, indent + 2, out)
            out.write(f",  # {i}\n")
        out.write(" " * indent + "]")
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        shown = bytes(obj[:_BYTES_SHOWN])
        out.write(f"{shown!r}" if len(obj) <= _BYTES_SHOWN else f"{shown!r}... {len(obj)} bytes")
    elif isinstance(obj, enum.Enum):
        out.write(f"{type(obj).__name__}.{obj.name}")
    else:
        out.write(repr(obj))


def pretty_print_stacktraces(obj: FrameList) -> str:
    """A stack trace as Python prints it."""
    lines = ["Traceback (most recent call last):"]
    for frame in obj.items:
        lines.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        lines.append(f"    {frame.context}")
    return "\n".join(lines) + "\n"


def _tensor_text(value: schema.Tensor, show_meminfo: bool, mark_dynamic: bool) -> str:
    place = "T"
    if value.allocation_info is not None:
        info = value.allocation_info
        place = f"Tm{info.memory_id}.{info.memory_offset}" if show_meminfo else "Tm"
    elif value.data_buffer_idx > 0:
        place = "CT"
    elif value.extra_tensor_info is not None and value.extra_tensor_info.location == 1:
        place = "ET"
    dtype = str(get_scalar_type(value.scalar_type)).removeprefix("torch.")
    dynamic = mark_dynamic and value.shape_dynamism != schema.TensorShapeDynamism.STATIC
    return f"{place}{value.sizes}{dtype}{'*' if dynamic else ''}"


_LETTERS = {
    schema.Int: "I",
    schema.Double: "D",
    schema.Bool: "B",
    schema.String: "S",
    schema.IntList: "IL",
    schema.DoubleList: "DL",
    schema.BoolList: "BL",
    schema.TensorList: "TL",
    schema.OptionalTensorList: "OTL",
    schema.Null: "O",
}


def _value_text(value: Any, show_meminfo: bool, mark_dynamic: bool) -> str:
    if isinstance(value, schema.Tensor):
        return _tensor_text(value, show_meminfo, mark_dynamic)
    letter = _LETTERS[type(value)]
    fields = dataclasses.fields(value)
    return letter if not fields else f"{letter}{getattr(value, fields[0].name)!r}"


def print_program(
    program: Program,
    show_meminfo: bool = True,
    mark_dynamic_shape_tensor: bool = False,
    out: TextIO | None = None,
) -> None:
    """Print every method's instructions, a line each: `<i>: <op> <value>,<value>...`.

    A value is its index and what it is: I int, D double, B bool, S string, O none, IL DL BL TL OTL
    lists, CT constant tensor, ET external tensor, Tm<arena>.<offset>[shape]dtype planned tensor
    (`*`: dynamic shape, if asked for). Inputs I<k> and outputs O<k> of the method are red.
    """
    stream = out or sys.stdout
    for plan in program.execution_plan:
        stream.write(f"{plan.name}: arenas {plan.non_const_buffer_sizes}\n")
        roles: dict[int, str] = {}
        for prefix, indices in (("I", plan.inputs), ("O", plan.outputs)):
            for k, index in enumerate(indices):
                roles[index] = roles.get(index, "") + f"{prefix}{k}"

        def text(index: int, plan: Any = plan, roles: dict[int, str] = roles) -> str:
            value = plan.values[index].val
            shown = f"{index}{_value_text(value, show_meminfo, mark_dynamic_shape_tensor)}"
            return f"{_RED}{shown}{roles[index]}{_RESET}" if index in roles else shown

        for chain in plan.chains:
            for i, instruction in enumerate(chain.instructions):
                stream.write(f"{i}: {_instruction_text(instruction.instr_args, plan, text)}\n")


def _instruction_text(call: Any, plan: Any, text: Any) -> str:
    if isinstance(call, schema.KernelCall):
        op = plan.operators[call.op_index]
        name = f"{op.name}.{op.overload}" if op.overload else op.name
        return f"{name} {','.join(map(text, call.args))}"
    if isinstance(call, schema.DelegateCall):
        name = plan.delegates[call.delegate_index].id
        return f"DELEGATE {name} {','.join(map(text, call.args))}"
    if isinstance(call, schema.MoveCall):
        return f"MOVE {text(call.move_from)} -> {text(call.move_to)}"
    if isinstance(call, schema.JumpFalseCall):
        return f"JF ({text(call.cond_value_index)}) -> {call.destination_instruction}"
    return f"FREE {text(call.value_index)}"


def inspect_node(graph: Graph, node: Node) -> str:
    """The graph with a cursor at the node, then the node's metadata."""
    lines = [add_cursor_to_graph(graph, node), "", f"metadata of {node}:"]
    lines += [f"  {key}: {value}" for key, value in node.meta.items()]
    return "\n".join(lines) + "\n"


def add_cursor_to_graph(graph: Graph, finding_node: Node) -> str:
    """The graph as text, an arrow at `finding_node`."""
    lines = ["graph():"]
    for node in graph.nodes:
        marker = "-->" if node is finding_node else "   "
        lines.append(f"{marker} {node.format_node() or 'return ' + str(node.args[0])}")
    return "\n".join(lines)
