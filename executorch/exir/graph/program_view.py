"""One method of a program as passes see it: its graphs, and what its signature says of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from torch import SymInt, Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from torch.fx import Graph, GraphModule, Node

from executorch.exir.graph.dynamic_sizes import Dimension
from executorch.exir.graph_module import all_graph_modules
from executorch.exir.torch_internals import (
    FakeTensor,
    is_traceable_wrapper_subclass,
    set_parts,
)

T = TypeVar("T")
Place = tuple[int, int]

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
_GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


class Dialect(Enum):
    """What the calls of a graph may be.

    ATEN     torch operators, as decomposition leaves them
    EDGE     edge operators that write nowhere; arithmetic, sizes and assertions are torch's
    BACKEND  as EDGE, with operators that write into their arguments, those of `executorch_prim` and
             views of memory
    OUT      every result lies in memory that the graph names
    """

    ATEN = "aten"
    EDGE = "edge"
    BACKEND = "backend"
    OUT = "out"


def fact(compute: Callable[[ProgramView], T]) -> property:
    """A property that is computed once, until the view is told to `forget`."""
    name = compute.__name__

    def get(self: ProgramView) -> T:
        if name not in self._facts:
            self._facts[name] = compute(self)
        return self._facts[name]  # type: ignore[no-any-return]

    return property(get, doc=compute.__doc__)


class ProgramView:
    """A program, or a graph module by itself, which has no signature and so no facts.

    Facts are kept until `forget`: whoever changes inputs or outputs calls it, the driver does after
    every pass that changed anything. Facts of a view name nodes, not their names.
    """

    def __init__(
        self, given: ExportedProgram | GraphModule, dialect: Dialect | None = None
    ) -> None:
        self.dialect = dialect  # None: not known, and not checked
        self.changed_elsewhere: frozenset[str] = frozenset()  # buffers that other methods change
        self.program = given if isinstance(given, ExportedProgram) else None
        self._module = given if isinstance(given, GraphModule) else None
        self._facts: dict[str, Any] = {}

    @property
    def graph_module(self) -> GraphModule:
        found = self._module if self.program is None else self.program.graph_module
        assert found is not None
        return found

    @graph_module.setter
    def graph_module(self, new: GraphModule) -> None:
        if self.program is None:
            self._module = new
        else:
            set_parts(self.program, graph_module=new)
        self.forget()

    @property
    def graph(self) -> Graph:
        return self.graph_module.graph

    def graph_modules(self) -> Iterator[GraphModule]:
        """The graph and those of control flow below it."""
        return all_graph_modules(self.graph_module)

    @property
    def signature(self) -> ExportGraphSignature | None:
        return None if self.program is None else self.program.graph_signature

    def forget(self) -> None:
        """Compute facts anew when they are asked for."""
        self._facts.clear()

    # Facts.

    @fact
    def inputs(self) -> dict[Node, InputSpec]:
        """Placeholder -> what the signature says of it, in the graph's order."""
        specs = {s.arg.name: s for s in self.signature.input_specs} if self.signature else {}
        nodes = self.graph.find_nodes(op="placeholder")
        return {n: specs[n.name] for n in nodes if n.name in specs}

    @fact
    def placeholders(self) -> dict[str, Node]:
        """Name of a stored tensor, or of an input -> its (first) placeholder."""
        found: dict[str, Node] = {}
        for node, spec in self.inputs.items():
            found.setdefault(spec.target or node.name, node)
        return found

    @property
    def outputs(self) -> list[tuple[OutputSpec, Any]]:
        """What the signature says of each result, and the node or number."""
        if self.signature is None:
            return []
        return list(zip(self.signature.output_specs, self._results(), strict=True))

    @fact
    def next_values(self) -> dict[Node, Any]:
        """Placeholder -> its value in the next call, of the buffers and inputs that change."""
        return {
            self.placeholders[str(spec.target)]: value
            for spec, value in self.outputs
            if spec.kind in MUTATIONS
        }

    @fact
    def stored(self) -> dict[Node, Tensor]:
        """Placeholder -> tensor, of the parameters, constants and buffers that no call changes."""
        found = {}
        for node, spec in self.inputs.items():
            changes = node in self.changing_buffers or spec.target in self.changed_elsewhere
            if spec.kind in _STORED and not changes:
                found[node] = self.tensor_of(spec)
        return found

    @fact
    def changing_buffers(self) -> set[Node]:
        """Placeholders of the buffers that calls change, under whatever name."""
        kind = OutputKind.BUFFER_MUTATION
        targets = {spec.target for spec, _ in self.outputs if spec.kind is kind}
        return {n for n, s in self.inputs.items() if s.target in targets and s.target is not None}

    @fact
    def constants(self) -> dict[Node, Tensor]:
        """Those of `stored` whose values are there, in plain memory."""
        return {n: t for n, t in self.stored.items() if _is_plain(t)}

    @fact
    def readers(self) -> dict[Place, int]:
        """Place of a constant's bytes -> how many calls read it, under whatever name."""
        found: dict[Place, int] = {}
        for node, tensor in self.constants.items():
            found[place_of(tensor)] = found.get(place_of(tensor), 0) + len(node.users)
        return found

    @fact
    def dynamic_dims(self) -> dict[Any, Dimension]:
        """Symbol of each dynamic dimension of the caller's inputs -> where it is, and the size."""
        found: dict[Any, Dimension] = {}
        for node, spec in self.inputs.items():
            value = node.meta.get("val")
            if spec.kind is not InputKind.USER_INPUT or not isinstance(value, Tensor):
                continue
            for dim, size in enumerate(value.shape):
                if isinstance(size, SymInt) and size.node.expr.is_Symbol:
                    place = f"dimension {dim} of input {node.name}"
                    found.setdefault(size.node.expr, (place, size))
        return found

    @property
    def is_trained(self) -> bool:
        """Whether the program computes gradients: its parameters change from call to call."""
        return any(spec.kind in _GRADIENTS for spec, _ in self.outputs)

    @property
    def first_input(self) -> Node:
        """Where stored tensors end: the first input of the caller, or the node behind them all."""
        for node in self.graph.nodes:
            spec = self.inputs.get(node)
            if node.op != "placeholder" or (spec and spec.kind is InputKind.USER_INPUT):
                return node  # type: ignore[no-any-return]
        raise ValueError("the graph has no nodes")

    def store_of(self, spec: InputSpec) -> dict[str, Tensor]:
        """Where the program stores what an input reads: its state dict, or its constants."""
        program = self.program
        assert program is not None
        return program.state_dict if spec.target in program.state_dict else program.constants

    def tensor_of(self, spec: InputSpec) -> Tensor:
        """What the program stores for an input."""
        return self.store_of(spec)[str(spec.target)]

    # Changes of the signature.

    def update_inputs(
        self, added: Mapping[str, InputSpec] | None = None, data: Mapping[str, Tensor] | None = None
    ) -> None:
        """Make the signature's inputs those of the graph. `added` says what new placeholders, by
        name, are, `data` what is stored for them in the state dict; those that are gone are
        dropped, and so is what was stored for them alone. Other programs may share the stores that
        there were: the program gets new ones."""
        program = self.program
        assert program is not None
        old = program.graph_signature.input_specs
        specs_of = {s.arg.name: s for s in old} | dict(added or {})
        specs = [specs_of[n.name] for n in self.graph.find_nodes(op="placeholder")]
        gone = {s.target for s in old} - {s.target for s in specs}
        stores = (program.state_dict | dict(data or {}), program.constants)
        kept = [{k: v for k, v in store.items() if k not in gone} for store in stores]
        self._set(specs, program.graph_signature.output_specs)
        set_parts(program, state_dict=kept[0], constants=kept[1])

    def update_outputs(self, specs: list[OutputSpec] | None = None) -> None:
        """Give the outputs' specifications, in order, the names that the results have now."""
        if self.program is None:
            return
        signature = self.program.graph_signature
        given = signature.output_specs if specs is None else specs
        named = [_named(spec, value) for spec, value in zip(given, self._results(), strict=True)]
        if named != signature.output_specs:
            self._set(signature.input_specs, named)

    def _results(self) -> list[Any]:
        """The results of the graph; a condition of a loop returns its only one without a list."""
        results: Any = self.graph.output_node().args[0]
        return list(results) if isinstance(results, (list, tuple)) else [results]

    def _set(self, inputs: list[InputSpec], outputs: list[OutputSpec]) -> None:
        assert self.program is not None
        set_parts(self.program, graph_signature=ExportGraphSignature(inputs, outputs))
        self.forget()


def _named(spec: OutputSpec, value: Any) -> OutputSpec:
    if not isinstance(value, Node) or spec.arg.name == value.name:
        return spec
    return OutputSpec(spec.kind, type(spec.arg)(name=value.name), spec.target)  # type: ignore


def renamed_signature(old: ExportGraphSignature, graph_module: GraphModule) -> ExportGraphSignature:
    """The signature with the names of another graph, whose inputs and outputs are the same in the
    same order; RuntimeError if their numbers differ."""
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    outputs: Any = graph_module.graph.output_node().args[0]
    if len(placeholders) != len(old.input_specs) or len(outputs) != len(old.output_specs):
        raise RuntimeError(
            f"a pass changed the number of inputs or outputs: the signature has "
            f"{len(old.input_specs)} and {len(old.output_specs)}, the graph {len(placeholders)} "
            f"and {len(outputs)}; write an ExportedProgramPassBase to change both"
        )
    renamed = copy.deepcopy(old)
    new_names: dict[str, str] = {}
    for given, node in zip(renamed.input_specs, placeholders, strict=True):
        new_names[given.arg.name] = node.name
        given.arg.name = node.name  # type: ignore[union-attr]
    for result, value in zip(renamed.output_specs, outputs, strict=True):
        if isinstance(value, Node):
            result.arg.name = value.name  # type: ignore[union-attr]
        if result.kind is OutputKind.USER_INPUT_MUTATION:
            result.target = new_names[str(result.target)]
    return renamed


def named_as_its_graph(program: ExportedProgram) -> ExportedProgram:
    """`program` with its graph's names in its signature; torch copies the graph of a program whose
    input has a name such as `input` with other names."""
    placeholders = program.graph.find_nodes(op="placeholder")
    given = [s.arg.name for s in program.graph_signature.input_specs]
    if [n.name for n in placeholders] == given:
        return program
    new = copy.copy(program)
    signature = renamed_signature(program.graph_signature, program.graph_module)
    set_parts(new, graph_signature=signature)
    return new


def place_of(tensor: Tensor) -> Place:
    """Where the tensor's bytes are: equal for one weight under several names."""
    return tensor.data_ptr(), tensor.nbytes


def _is_plain(tensor: Tensor) -> bool:
    import torch

    special = isinstance(tensor, FakeTensor) or is_traceable_wrapper_subclass(tensor)
    return not special and not tensor.is_meta and tensor.layout is torch.strided
