"""Where the instructions of a program come from, and what its inputs and outputs are called, as
`schema/debug_identity.fbs` keeps it."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from executorch.exir import schema
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.source_line import user_frame
from executorch.exir.passes.debug_handle_generator_pass import debug_handles

if TYPE_CHECKING:
    from executorch.exir.emit._emit_program import MethodEmitter
    from executorch.exir.emit._emitter import GraphEmitter

# The named data that the runtime looks for.
KEY = "executorch.debug_identity"

_NAMES: dict[type, str] = {
    schema.MoveCall: "move",
    schema.JumpFalseCall: "jump_false",
    schema.FreeCall: "free",
}
_Place = tuple[str, str, int]  # module path, file, line


class DebugIdentity:
    """Collects the origins and names of methods; every text and every place is stored once."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._places: dict[_Place, int] = {("", "", 0): 0}
        self._methods: list[Any] = []

    def add_method(self, name: str, emitter: MethodEmitter) -> None:
        origins = array("I")
        for instruction, nodes in zip(emitter.instructions, emitter.sources, strict=True):
            call = instruction.instr_args
            if isinstance(call, schema.DelegateCall):
                nodes = (*nodes, *_calls(emitter.lowered[len(origins) // 2])[:1])
            origins.extend((self._string(_operator(emitter, call)), self._place(nodes)))
        calls = [(i, *self._delegated(lowered)) for i, lowered in emitter.lowered.items()]
        chains = [(origins, [c for c in calls if c[1] or c[2]])]
        inputs, outputs = (
            array("I", [self._string(given) for given in names])
            for names in (emitter.input_names, emitter.output_names)
        )
        self._methods.append((name, chains, inputs, outputs, _is_stateless(emitter)))

    def to_bytes(self) -> bytes:
        from executorch.exir import _native

        strings = list(self._strings)
        places = array("I")
        for module_path, file, line in self._places:
            places.extend((self._strings[module_path], self._strings[file], line))
        return _native.write_debug_identity(strings, places, self._methods)

    def _delegated(self, lowered: Any) -> tuple[array[int], array[int]]:
        """Origins by the backend's numbers, and by its names: the backend maps them to the debug
        handles of the nodes that it made one operator of."""
        by_handle: dict[Any, list[Node]] = {}
        for node in _calls(lowered):
            for handle in debug_handles(node):
                by_handle.setdefault(handle, []).append(node)
        by_id, by_name = array("I"), array("I")
        given = (getattr(lowered, "meta", None) or {}).get("debug_handle_map") or {}
        for key in sorted(given, key=lambda k: (isinstance(k, str), k)):
            handles = given[key] if isinstance(given[key], (tuple, list)) else (given[key],)
            nodes = [node for handle in handles for node in by_handle.get(handle, ())]
            names = dict.fromkeys(name for node in nodes if (name := _name(node)))
            origin = (self._string("+".join(names)), self._place(nodes[:1]))
            if isinstance(key, str):
                by_name.extend((self._string(key), *origin))
            elif 0 <= key < 1 << 32:
                by_id.extend((key, *origin))
        return by_id, by_name

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _place(self, nodes: Sequence[Node]) -> int:
        place = place_of(nodes)
        self._string(place[0])
        self._string(place[1])
        return self._places.setdefault(place, len(self._places))


def place_of(nodes: Sequence[Node]) -> _Place:
    """(module path, file, line) of the user's code that the last node stems from, or, where it does
    not know, the one before it; "" and 0 if none does."""
    stacks = [stack for node in nodes if (stack := node.meta.get("nn_module_stack"))]
    path = str(next(reversed(stacks[-1].values()))[0]) if stacks else ""
    found = [frame for node in nodes if (frame := user_frame(node))]
    file, line = (_short(found[-1][0]), found[-1][1]) if found else ("", 0)
    return path.removeprefix("L['self']").removeprefix("."), file, line


@lru_cache(maxsize=1024)
def _short(file: str) -> str:
    """The file with its last two folders: enough to find it. The home directory, and with it the
    user's name, is left out."""
    path = file.removeprefix(str(Path.home()))
    return "/".join([part for part in re.split(r"[\\/]", path) if part][-3:])


def _is_stateless(emitter: MethodEmitter) -> bool:
    """Whether no call of the method changes what a later one reads."""
    signatures = (
        getattr(getattr(lowered, "original_module", None), "graph_signature", None)
        for lowered in emitter.lowered.values()
    )
    return not emitter.has_state and not any(s and s.buffers_to_mutate for s in signatures)


def _calls(lowered: Any) -> list[Node]:
    original = getattr(lowered, "original_module", None)
    nodes = original.graph.nodes if original is not None else ()
    return [n for n in nodes if n.op == "call_function"]


def _name(node: Node) -> str:
    """The operator as the runtime spells it; "" for calls of no operator, such as getitem."""
    op = overload_of(node.target)
    return op.name() if op is not None else ""


def _operator(emitter: GraphEmitter, call: schema.InstructionArguments) -> str:
    if isinstance(call, schema.KernelCall):
        op = emitter.operators[call.op_index]
        return f"{op.name}.{op.overload}" if op.overload else op.name
    if isinstance(call, schema.DelegateCall):
        return emitter.delegates[call.delegate_index].id
    return _NAMES[type(call)]
