"""Sub-graphs that are taken out of a graph, and the calls that come in their place."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node

from executorch.exir.backend.partitioner import DelegationSpec
from executorch.exir.delegate import LOWERED_PREFIX, executorch_call_delegate
from executorch.exir.graph.graph_edit import provenance
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.make_program import make_program
from executorch.exir.torch_internals import LazyGraphModule

TAG = "delegation_tag"

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(eq=False)
class Part:
    """The nodes of one tag, and the program they make.

    inputs   what the call is given, in order: inputs of `program` that are no data of its own
    outputs  whose values the call returns, in order
    owned    constants and buffers that are in `program`
    mutated  owned buffers -> their next values, which the delegate keeps
    """

    tag: str
    spec: DelegationSpec
    nodes: list[Node]
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    owned: list[Node] = field(default_factory=list)
    mutated: dict[Node, Node] = field(default_factory=dict)
    program: ExportedProgram | None = None
    lowered: Any = None


class Parts:
    """All parts of one graph. `extract` reads the graph, `replace` edits it; both are linear in its
    size, but for a sort when calls have to move."""

    def __init__(self, program: ExportedProgram, tags: Mapping[str, DelegationSpec]) -> None:
        self.program = program
        self.graph = program.graph_module.graph
        signature = program.graph_signature
        self.specs = {s.arg.name: s for s in signature.input_specs if hasattr(s.arg, "name")}
        self.mutations = {
            s.target: s for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION
        }
        self.parts = {tag: Part(tag, spec, []) for tag, spec in tags.items()}
        self.part_of: dict[Node, Part] = {}
        self.results: dict[Node, Node] = {}  # what a part computes -> what its call returns
        self._collect()
        self.parts = {tag: part for tag, part in self.parts.items() if part.nodes}
        for part in self.parts.values():
            self._extract(part)

    def __iter__(self) -> Any:
        return iter(self.parts.values())

    def _collect(self) -> None:
        for node in self.graph.nodes:
            part = self.parts.get(node.meta.get(TAG, ""))
            if node.target is operator.getitem and node.args[0] in self.part_of:
                part = self.part_of[node.args[0]]  # a list is no value between programs
            if part is None:
                continue
            if node.op == "output":
                raise RuntimeError(f"the output has the tag {part.tag!r}: it cannot be delegated")
            if node.op == "placeholder":
                if not self._is_stored(node):
                    raise RuntimeError(
                        f"input {node} has the tag {part.tag!r}: only parameters, buffers and "
                        "constants can be a delegate's own"
                    )
            elif node.op == "call_function":
                part.nodes.append(node)
                self.part_of[node] = part

    def _is_stored(self, node: Node) -> bool:
        spec = self.specs.get(node.name)
        return node.op == "placeholder" and spec is not None and spec.kind in _STORED

    def _is_owned(self, node: Node) -> bool:
        return TAG in node.meta and self._is_stored(node)

    # ---- extraction ----

    def _extract(self, part: Part) -> None:
        read = dict.fromkeys(
            source
            for node in part.nodes
            for source in node.all_input_nodes
            if self.part_of.get(source) is not part
        )
        part.inputs = [n for n in read if n.op != "get_attr" and not self._is_owned(n)]
        part.owned = [n for n in read if self._is_owned(n)]
        self._check_owned(part)
        self._find_mutated(part)
        part.outputs = [n for n in part.nodes if self._is_read_outside(n, part)]
        part.program = self._program_of(part, [n for n in read if n.op == "get_attr"])

    def _check_owned(self, part: Part) -> None:
        for node in part.owned:
            users = {self.part_of.get(user) for user in node.users if user.op != "output"}
            if len(users) > 1 and (node.meta.get("no_copy") or self._is_mutated(node)):
                raise RuntimeError(
                    f"{node} is the own data of tag {part.tag!r}, is read elsewhere too, and may "
                    "not be copied"
                )

    def _is_mutated(self, node: Node) -> bool:
        return self.specs[node.name].target in self.mutations

    def _find_mutated(self, part: Part) -> None:
        for node in part.owned:
            mutation = self.mutations.get(self.specs[node.name].target)
            if mutation is None:
                continue
            value = next((n for n in part.nodes if n.name == mutation.arg.name), None)
            if value is None:
                raise RuntimeError(
                    f"buffer {node} is the own data of tag {part.tag!r}, but its next value "
                    f"{mutation.arg.name} is computed elsewhere"
                )
            part.mutated[node] = value

    def _is_read_outside(self, node: Node, part: Part) -> bool:
        for user in node.users:
            if user.op == "output":
                kept = sum(value is node for value in part.mutated.values())
                listed: Any = user.args[0]
                if sum(result is node for result in listed) > kept:
                    return True
            elif self.part_of.get(user) is not part:
                return True
        return False

    def _program_of(self, part: Part, attributes: list[Node]) -> ExportedProgram:
        graph, env, specs = Graph(), {}, []
        kinds = {InputKind.PARAMETER: 0, InputKind.BUFFER: 1}
        mine = set(part.owned)
        order = {n: i for i, n in enumerate(self._in_order([*part.owned, *part.inputs], part))}
        sources = sorted(
            order,
            key=lambda n: (kinds.get(self.specs[n.name].kind, 2) if n in mine else 2, order[n]),
        )
        for source in sources:
            env[source] = graph.placeholder(source.name)
            env[source].meta = {k: v for k, v in source.meta.items() if k != TAG}
            given = self.specs[source.name] if source in mine else None
            argument = _argument(env[source])
            specs.append(
                InputSpec(given.kind, argument, given.target, given.persistent)
                if given is not None
                else InputSpec(InputKind.USER_INPUT, argument, None)
            )
        part.inputs = [n for n in sources if n not in mine]
        root = torch.nn.Module()
        for attribute in attributes:
            env[attribute] = graph.node_copy(attribute)
            name = str(attribute.target)
            setattr(root, name, _untagged(getattr(self.program.graph_module, name)))
        for node in part.nodes:
            env[node] = graph.node_copy(node, lambda n: env[n])
            env[node].meta.pop(TAG, None)
        results = [*part.mutated.values(), *part.outputs]
        graph.output([env[n] for n in results])
        targets = [self.specs[n.name].target for n in part.mutated]
        signature = ExportGraphSignature(
            specs,
            [
                OutputSpec(OutputKind.BUFFER_MUTATION, _argument(env[n]), targets[i])
                if i < len(targets)
                else OutputSpec(OutputKind.USER_OUTPUT, _argument(env[n]), None)
                for i, n in enumerate(results)
            ],
        )
        names = {self.specs[n.name].target for n in part.owned}
        return make_program(
            LazyGraphModule(root, graph),
            signature,
            {k: self.program.state_dict[k] for k in names if k in self.program.state_dict},
            {k: self.program.constants[k] for k in names if k in self.program.constants},
            self.program,
        )

    def _in_order(self, inputs: list[Node], part: Part) -> Iterable[Node]:
        """The inputs in the order of their first reader."""
        wanted = set(inputs)
        return dict.fromkeys(n for node in part.nodes for n in node.all_input_nodes if n in wanted)

    # ---- replacement ----

    def replace(self) -> None:
        """Put calls of the parts' lowered modules in place of their nodes, in the whole program."""
        if not self.parts:
            return
        self._make_contiguous()
        module = self.program.graph_module
        count = sum(name.startswith(LOWERED_PREFIX) for name, _ in module.named_children())
        for number, part in enumerate(self.parts.values(), count):
            module.add_module(f"{LOWERED_PREFIX}{number}", part.lowered)
            self._insert_call(part, f"{LOWERED_PREFIX}{number}")
        outputs = self._without_kept_mutations()
        for part in self.parts.values():
            for node in reversed(part.nodes):
                self.graph.erase_node(node)
        self._drop_owned(outputs)
        module.recompile()

    def _insert_call(self, part: Part, name: str) -> None:
        with self.graph.inserting_after(part.nodes[-1]):
            attribute = self.graph.get_attr(name)
        with self.graph.inserting_after(attribute):
            inputs = [self.results.get(n, n) for n in part.inputs]
            call = self.graph.call_function(executorch_call_delegate, (attribute, *inputs))
        call.meta["val"] = [n.meta["val"] for n in part.outputs]
        last = call
        for i, node in enumerate(part.outputs):
            with self.graph.inserting_after(last):
                last = self.graph.call_function(operator.getitem, (call, i))
            last.meta = {**provenance(node), "val": node.meta["val"]}
            self.results[node] = last
            node.replace_all_uses_with(
                last, delete_user_cb=lambda user: self.part_of.get(user) is not part
            )

    def _without_kept_mutations(self) -> list[OutputSpec]:
        """Take the next values that delegates keep out of the graph's outputs; returns the others'
        specifications."""
        kept = {self.specs[n.name].target for part in self.parts.values() for n in part.mutated}
        if not kept:
            return list(self.program.graph_signature.output_specs)
        output = self.graph.output_node()
        pairs = [
            (spec, value)
            for spec, value in ProgramView(self.program).outputs
            if spec.kind is not OutputKind.BUFFER_MUTATION or spec.target not in kept
        ]
        output.args = (tuple(value for _, value in pairs),)
        return [spec for spec, _ in pairs]

    def _drop_owned(self, outputs: list[OutputSpec]) -> None:
        """Take the delegates' own data out of graph, signature and program."""
        for node in dict.fromkeys(n for part in self.parts.values() for n in part.owned):
            if not node.users:
                self.graph.erase_node(node)
        view = ProgramView(self.program)
        view.update_inputs()
        view.update_outputs(outputs)

    def _make_contiguous(self) -> None:
        """Reorder the graph so that whatever reads a part's result comes after all of the part.

        RuntimeError if that cannot be, as a part needs its own results by way of other nodes.
        """
        position = {node: i for i, node in enumerate(self.graph.nodes)}
        if all(
            position[user] > position[part.nodes[-1]]
            for part in self.parts.values()
            for node in part.outputs
            for user in node.users
            if self.part_of.get(user) is not part
        ):
            return
        for node in self._sorted(position):
            self.graph.output_node().prepend(node)

    def _sorted(self, position: dict[Node, int]) -> list[Node]:
        """All nodes but the output in an order in which parts are in one piece; otherwise as they
        are, as far as possible (Kahn's algorithm over parts and single nodes)."""
        units: dict[Any, list[Node]] = {}
        for node in position:
            if node.op != "output":
                units.setdefault(self._unit(node), []).append(node)
        waits = {
            unit: {self._unit(s) for n in nodes for s in n.all_input_nodes} - {unit}
            for unit, nodes in units.items()
        }
        readers: dict[Any, list[Any]] = {}
        for unit, sources in waits.items():
            for source in sources:
                readers.setdefault(source, []).append(unit)
        missing = {unit: len(sources) for unit, sources in waits.items()}
        last = {unit: position[nodes[-1]] for unit, nodes in units.items()}
        ready = [(last[unit], unit) for unit, n in missing.items() if n == 0]
        heapq.heapify(ready)
        found: list[Node] = []
        while ready:
            _, unit = heapq.heappop(ready)
            found += units[unit]
            for reader in readers.get(unit, ()):
                missing[reader] -= 1
                if missing[reader] == 0:
                    heapq.heappush(ready, (last[reader], reader))
        if len(found) < len(position) - 1:
            stuck = [u for u, n in missing.items() if n > 0 and isinstance(u, str)]
            raise RuntimeError(
                f"the tags {stuck} depend on each other in a circle: a delegate would need its own "
                "results before it has run; give the nodes on both sides of other nodes two tags"
            )
        return found

    def _unit(self, node: Node) -> Any:
        part = self.part_of.get(node)
        return node if part is None else part.tag


def _argument(node: Node) -> Any:
    value = node.meta.get("val")
    for type_, argument in (
        (torch.SymInt, SymIntArgument),
        (torch.SymFloat, SymFloatArgument),
        (torch.SymBool, SymBoolArgument),
    ):
        if isinstance(value, type_):
            return argument(name=node.name)
    return TensorArgument(name=node.name)


def _untagged(module: Any) -> Any:
    """`module` without the tags of the partitioner that took it as a whole, which may have looked
    inside: a backend may hand what it was given to a partitioner of its own."""
    if isinstance(module, GraphModule):
        for graph_module in all_graph_modules(module):
            for node in graph_module.graph.nodes:
                node.meta.pop(TAG, None)
    return module
